"""A page on this machine that runs exported files, in the browser where its runtimes take them, else here."""
