/* empty on purpose: probes/arch/ has the registers */
