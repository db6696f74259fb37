"""Levels: how long calls take, in which range windows of an unchanged program stay, and the verdict on a new window."""
