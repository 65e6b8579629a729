from datetime import date

import numpy as np
import pytest

from ronid.export.report import ReportData
from ronid.types import UNLABELLED, DataReport, Intent, Neighbour, Scores

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "{{script}} {{data}} & &amp; \u2028\u2029",
    "אני רוצה לבטל את ההזמנה",
    "أريد إلغاء الطلب",
    "我的信用卡丢了 🎉",
    "--> <!-- ]]> \\u003c ' \" `",
    "lone surrogate \ud800",
]


@pytest.fixture
def report_data() -> ReportData:
    rng = np.random.default_rng(0)
    plain = [f"please refund order {row}" for row in range(60)]
    texts = HOSTILE + plain
    labels = np.arange(len(texts)) % 4
    centres = np.array([[-0.7, -0.5], [0.7, -0.5], [-0.6, 0.6], [0.6, 0.6]])
    sizes = np.bincount(labels, minlength=5)
    names = ["<b>bold</b>", "track_order", "gift_card", "取消订单", "new_intent_4"]
    intents = [
        Intent(
            index=k,
            name=names[k],
            known=k < 2,
            size=int(sizes[k]),
            share=float(sizes[k] / len(texts)),
            prior=0.2,
            confidence=0.5 + 0.1 * k,
            keyphrases=("<i>phrase</i>", "gift card"),
            exemplars=tuple(HOSTILE[:5]) if sizes[k] else (),
            description="</p><script>alert(5)</script>",
            borderline=tuple(HOSTILE[4:7]) if sizes[k] else (),
            nearest=(Neighbour("<b>bold</b>", 0.75), Neighbour("إلغاء_الطلب", 0.5)),
            named_by="model:<i>small</i>" if k == 2 else "keyphrases",
        )
        for k in range(5)
    ]
    return ReportData(
        title="Shop <chat> & co",
        texts=texts,
        labels=labels,
        intents=intents,
        coordinates=(centres[labels] + 0.1 * rng.normal(size=(len(texts), 2))).astype(np.float32),
        confidence=np.linspace(0.3, 1, len(texts)).astype(np.float32),
        given=np.where(labels == 0, 0, UNLABELLED),
        history=[
            {"stage": "em", "epoch": epoch, "loss": 3 / epoch, "changed": 0.4 / epoch}
            for epoch in range(1, 6)
        ],
        summary={"method": "ronid", "note": "</dl><script>alert(4)</script>"},
        scores=Scores(nmi=80.0, ari=60.0, acc=70.0, known_acc=75.0, novel_acc=65.0, h_score=69.6),
        data_report=DataReport(70, 69, empties_dropped=1, messages=("column <text> was guessed",)),
        created=date(2026, 1, 2),
    )
