"""Data of others: published data sets, pretrained encoders, AnnData and MuData."""
