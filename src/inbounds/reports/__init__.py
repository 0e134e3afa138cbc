"""Tables and figures. They read files and never touch a network."""
