"""From a module of canonical parallel loops to unique nest functions and a program that calls them."""
