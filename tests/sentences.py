"""120 short sentences on four topics, for a test with a real encoder."""

TOPICS = {
    "cooking": """
        Simmer the onions until they turn golden.|Add a pinch of salt to the dough.|The soup needs more garlic.
        Roast the carrots with honey and thyme.|Knead the bread for ten minutes.|She whisked the eggs with sugar.
        Let the rice rest under a lid.|The oven should be hot before you bake.|He chopped parsley for the sauce.
        A sharp knife makes slicing tomatoes easy.|Boil the pasta until it is just tender.
        Melt the butter in a small pan.|The stew tastes better on the second day.|Grate some cheese over the gratin.
        Marinate the chicken overnight in yoghurt.|My grandmother's dumplings are filled with plums.
        The cake sank in the middle.|Stir the risotto and keep adding stock.|Lemon juice stops apples from browning.
        We fried the fish in olive oil.|The recipe asks for two cups of flour.|Toast the spices before grinding them.
        Pancakes need a very hot griddle.|This curry is too spicy for the children.|Peel the potatoes and mash them.
        He seasoned the steak with pepper.|The jam set after an hour of boiling.|Fold the cream into the chocolate.
        Pickled cucumbers keep for months.|The waiter brought a bowl of lentils.
    """,
    "astronomy": """
        The comet will return in seventy years.|Saturn's rings are made of ice and rock.
        A new telescope was pointed at the galaxy.|The moon hid the sun for two minutes.
        Jupiter has dozens of satellites.|Light from that star left it long ago.
        They found water vapour on an exoplanet.
        The probe sent pictures of Pluto.|A supernova outshone its whole galaxy.|Meteors streaked across the dark sky.
        Black holes bend the light around them.|The rover drilled into Martian rock.
        Astronauts repaired the orbiting observatory.|Venus is hotter than Mercury.|The nebula glows red with hydrogen.
        Two neutron stars merged and shook space.|The Milky Way is a barred spiral.
        Mars was close to the Earth this summer.
        The dish listens for pulsars all night.|Asteroids gather between Mars and Jupiter.
        The spacecraft left the solar system.|A solar flare disturbed the satellites.
        Dark matter holds the clusters together.|Uranus lies on its side.
        The launch put a lander on the way to the moon.
        Astronomers measured the distance of the quasar.|The eclipse was seen from the southern islands.
        Stars are born in cold clouds of gas.|The universe has been expanding ever since.
        Through binoculars you can see the craters.
    """,
    "football": """
        The goalkeeper saved the penalty.|Our team lost in the last minute.|The striker scored with a header.
        The referee showed a red card.|Fans sang all through the second half.
        The coach changed the formation at half time.
        A free kick hit the crossbar.|The defender slipped and the winger was through.
        They won the cup after extra time.|The club sold its captain for a record fee.
        The linesman raised his flag for offside.|The stadium was full for the derby.
        A clever pass opened the defence.|The match ended in a goalless draw.|He missed an open goal from two metres.
        The league title was decided on the final day.|The midfielder was injured in a tackle.
        Relegation is near for the home side.|She plays as a left back for the national team.
        The corner was cleared by the first man.|The substitute scored with his first touch.
        Video replay cancelled the goal.|The players trained in the rain.|A hat-trick made the young forward famous.
        The away fans were late for kick-off.|They kept a clean sheet for five games.
        The manager was sacked after three defeats.|The ball crossed the line by an inch.
        The tournament begins with a group stage.|He dribbled past four opponents.
    """,
    "money": """
        The bank raised its interest rates.|Shares fell after the earnings report.|She paid off her mortgage early.
        Inflation has eaten up our savings.|The fund invests in government bonds.|He forgot to file his tax return.
        The company went bankrupt in spring.|Investors fear a recession.|My credit card was declined.
        The central bank printed more currency.|The start-up raised ten million in venture capital.
        Unemployment fell to a new low.|The exchange rate of the euro dropped.|The auditor found a gap in the accounts.
        Pension contributions are deducted from wages.|A loan with a high rate is hard to repay.
        The stock market closed higher on Friday.|The budget deficit grew by two per cent.
        Dividends are paid twice a year.|The insurer raised its premiums.|He keeps his cash under the mattress.
        The broker charges a fee for each trade.|Oil prices pushed up the cost of transport.
        The merger needs approval by the shareholders.|Rents take up half of their income.
        The invoice is due within thirty days.|Exports fell because of the new tariffs.
        The treasurer presented the annual balance sheet.|Households are borrowing more than ever.
        She opened a savings account for her son.
    """,
}


def sentences() -> dict[str, list[str]]:
    """Thirty a topic."""
    return {
        topic: [text.strip() for line in block.strip().splitlines() for text in line.split("|")]
        for topic, block in TOPICS.items()
    }
