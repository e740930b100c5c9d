"""The tables of TPC-DS: facts and items partitioned by item, customers by customer, small dimensions replicated."""

from __future__ import annotations

from typing import Final

from benchmarks.tpc.tables import TpcTable

__all__ = ["TABLES"]

TABLES: Final = (
    TpcTable("call_center", ("cc_call_center_sk",)),
    TpcTable("catalog_page", ("cp_catalog_page_sk",)),
    TpcTable("date_dim", ("d_date_sk",)),
    TpcTable("household_demographics", ("hd_demo_sk",)),
    TpcTable("income_band", ("ib_income_band_sk",)),
    TpcTable("promotion", ("p_promo_sk",)),
    TpcTable("reason", ("r_reason_sk",)),
    TpcTable("ship_mode", ("sm_ship_mode_sk",)),
    TpcTable("store", ("s_store_sk",)),
    TpcTable("time_dim", ("t_time_sk",)),
    TpcTable("warehouse", ("w_warehouse_sk",)),
    TpcTable("web_page", ("wp_web_page_sk",)),
    TpcTable("web_site", ("web_site_sk",)),
    TpcTable("customer_demographics", ("cd_demo_sk",), "cd_demo_sk"),
    TpcTable("customer_address", ("ca_address_sk",), "ca_address_sk"),
    TpcTable("customer", ("c_customer_sk",), "c_customer_sk"),
    TpcTable("item", ("i_item_sk",), "i_item_sk"),
    TpcTable("inventory", ("inv_item_sk", "inv_date_sk", "inv_warehouse_sk"), "inv_item_sk"),
    TpcTable("store_sales", ("ss_item_sk", "ss_ticket_number"), "ss_item_sk"),
    TpcTable("store_returns", ("sr_item_sk", "sr_ticket_number"), "sr_item_sk"),
    TpcTable("catalog_sales", ("cs_item_sk", "cs_order_number"), "cs_item_sk"),
    TpcTable("catalog_returns", ("cr_item_sk", "cr_order_number"), "cr_item_sk"),
    TpcTable("web_sales", ("ws_item_sk", "ws_order_number"), "ws_item_sk"),
    TpcTable("web_returns", ("wr_item_sk", "wr_order_number"), "wr_item_sk"),
)
