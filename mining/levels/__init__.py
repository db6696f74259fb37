"""Levels: how long calls take, in which range windows of an unchanged program stay, and the verdict on new windows.

- Which windows are there, of all calls, of a class or of some paths? ``window``
- How far do they vary between lifetimes and within one? ``variation``
- Which level do they have? ``estimate``
- Does it still hold? ``verdict``
"""
