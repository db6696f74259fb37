/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#define true 1
#define false 0
