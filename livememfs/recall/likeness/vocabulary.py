"""Words of English and French, and a few of Spanish and German, by which the parts of a statement are told.

Owns the lists that `statement` and `correction` read, all folded: small words, verbs, states, opposites. They are
closed classes (articles, prepositions, auxiliaries) and common verbs by what they let a subject have: one at a time,
or many. No name, tool or value is among them: what a value is, the sentence around it tells. Pure; any thread.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _groups(text: str) -> dict[str, str]:
    """Each word to the first of its group; `;` parts the groups."""
    return {word: group.split()[0] for group in text.split(";") for word in group.split()}


def _sides(text: str) -> tuple[tuple[str, ...], ...]:
    """The classes, which `;` parts, and the sides of each, which `/` parts."""
    return tuple(tuple(side.strip() for side in line.split("/")) for line in text.split(";"))


ARTICLES = _words(
    "the a an this that these those le la les l un une ce cet cette ces du des de d of s el los las del der das dem"
)
DEFINITE = _words("the le la les l my our your his her their mon ma mes notre nos votre vos son sa ses leur leurs")
INDEFINITE = _words("a an one un une una ein eine einen einem einer")
SMALL = _words(
    """it its there be been being very so just only all every each any some per than then here yet still today now
    currently y se s en il elle ils elles ce qu que qui tres tout tous toute toutes chaque encore actuellement
    seul seulement desormais dorenavant maintenant et and or ou both must should can will would peut doit faut m t j hui
    aujourd these days again nouveau uniquement which up out as since depuis too even pas plus"""
)
PREPOSITIONS = _groups(
    """
    at in on to into onto within inside under dans en à au aux sur vers chez sous jusqu im auf nach bei;
    with by through via using avec par con;
    for pour because contre against;
    from;
    without sans;
    before avant;
    after apres;
    until till;
    between entre"""
)
"""By what they say of a thing: where it is or goes, by what means, what it is for."""
NEGATIONS = _words(
    "not no never cannot without ne n ni jamais aucun aucune neither nor nunca nicht kein keine keinen nie"
)
COPULAS = _words(
    "does do did is are was were am be been est sont etait etaient suis sommes sera seront fut es esta ist sind"
)
HAVING = _words("has have had having ont ai avons avait avaient own owns possede ha han tiene hat haben")
COUNTS = _words(
    """one two three four five six seven eight nine ten eleven twelve twenty thirty deux trois quatre cinq sept huit
    neuf dix onze douze vingt trente"""
)
DATES = _words(
    """january february march april may june july august september october november december janvier fevrier mars avril
    mai juin juillet aout septembre octobre novembre decembre monday tuesday wednesday thursday friday saturday
    sunday lundi mardi mercredi jeudi vendredi samedi dimanche noon midnight midi minuit"""
)
NUMBERS = COUNTS | DATES
"""What counts or dates. Another one of it in the same sentence is another value of the same thing."""
WEEKDAYS = _words(
    """monday tuesday wednesday thursday friday saturday sunday lundi mardi mercredi jeudi vendredi samedi dimanche
    mondays tuesdays wednesdays thursdays fridays saturdays sundays"""
)
MEASURES = _groups(
    """
    kb mb gb tb ko mo go to bytes octets;
    second seconds minute minutes hour hours day days week weeks month months year years seconde secondes heure
        heures jour jours nuit semaine semaines mois an ans annee annees night ms s min h;
    metre metres meter meters m cm km kilometres;
    gram grams g kg kilo kilos kilogrammes;
    euro euros eur dollar dollars usd pounds"""
)
"""Units one of which is counted in the others."""

# Who speaks or is spoken of in most memories: not naming them is no other subject.
SPEAKER = _words("user i me my utilisateur utilisatrice je moi mon")
GROUP = _words("we our us team project nous notre equipe projet ")

PRONOUNS = _words("i we you they he she nous je j tu vous il elle ils elles")
"""Whose verb follows at once."""
ADDITIVE = _words(
    """like likes liked love loves enjoy enjoys hate hates dislike dislikes know knows speak speaks read reads play
    plays learn learns learning learnt depend depends depend want wants need needs visit visited visits met meet
    knows understand understands support supports accept accepts include includes eat eats drink drinks buy
    bought buys watch watches saw see sell sells bake cook grow grows offers add adds added drop drops mentioned
    said attended own owns collect collects allergic afraid fan interested good member friend aime aiment adore
    adorent deteste detestent connait connaissent sait parle parlent lit lisent joue jouent apprend apprennent
    visite comprend comprennent accepte acceptent inclut mange mangent boit boivent achete voit regarde veut
    veulent demande demandent depend dependent vend propose ajoute possede collectionne allergique peur fan
    interesse membre ami amie"""
)
"""Of what these tell a subject has many: another one is one more."""
SINGLE = _groups(
    """
    live lives lived living moved moves settled resides habite habitent vit vivent demenage emmenage installe
        vive viven mudado wohnt lebt umgezogen gezogen;
    work works worked working joined employed travaille travaillent rejoint embauche trabaja trabajan arbeitet
        arbeiten;
    use uses using utilise utilisent utiliza utilizan usa usan benutzt verwendet verwenden;
    prefer prefers preferred prefere preferent;
    called named appelle appellent nomme;
    choose chose chosen choisi choisit retenu retenons;
    cost costs coute coutent;
    weigh weighs pese pesent;
    drive drives roule roulent;
    take takes dure durent lasts;
    expire expires expirent;
    end ends finish finishes termine terminent finit;
    study studies studied etudie etudient;
    listen listens ecoute ecoutent;
    return returns renvoie renvoient retourne;
    deploy deploys deployed deploie deploient;
    store stores stored stocke stockent stocke stockes keep keeps kept garde gardes gardee gardees conserve;
    write writes written ecrit ecrite ecrits;
    build builds built construit;
    base based;
    lead leads dirige"""
)
"""Of what these tell a subject has one at a time, in the place or by the means that follow; one meaning in a row."""
OWN = _words(
    """called named appelle appellent nomme choose chose chosen choisi choisit retenu retenons cost costs coute coutent
    weigh weighs pese pesent drive drives returns returned return renvoie renvoient retourne study studies
    studied etudie etudient takes take takes dure durent lasts"""
)
"""Those of which it has one without such a word before it."""
ONE_OF_MANY = _words(
    """allergic afraid fan interested good member friend allergique peur fan interesse membre ami amie depend depends
    sold available translated supported spoken known popular taught vendu vendue disponible traduit traduite
    connu enseigne"""
)
"""What is in many places, although a preposition follows."""
VERBS = _words(
    """go goes went come comes came make makes made get gets got give gives gave found broke died find finds put puts
    become became seem seems show shows send sends sent ask asks say says hold holds meets meet start starts
    started serves serve contains stays stay sleep sleeps follow follows begin begins began leaves leave arrive
    arrives pay pays va vont vient viennent fait font met mettent prend prennent donne donnent reste restent
    envoie commence commencent contient part partent arrive arrivent dort dorment tient suit sert ferme"""
)
"""Other common verbs, of which nothing is known but that a subject stands before them."""
COMPOUND = _words("planned scheduled due set fixed expected prevu prevue prevus prevues fixe fixee reporte reportee")
"""After an auxiliary, these tell of what is to come, not of what happened."""

GOING = _words(
    """tombe tombee parti partie alle allee venu venue ne né nee mort morte sorti sortie entre entree arrive arrivee
    descendu descendue monte montee reste restee"""
)
"""French verbs whose past has `est`: with others, that is a state."""
NOW = _words("now instead anymore longer nowadays maintenant desormais dorenavant finalement ahora jetzt")
CHANGING = _words(
    """moved moves changed switched became becomes slipped postponed rescheduled delayed replaced migrated upgraded
    downgraded extended renamed rewritten converted promoted repainted joined ported shortened raised lowered
    mudado umgezogen demenage emmenage change changee devenu devenue passe passee remplace remplacee migre
    migree reporte reportee repousse repoussee decale decalee prolonge prolongee rallonge reecrit reecrite
    renomme renommee promu promue rejoint repeint repeinte avance avancee"""
)
BECOMING = _words("became become becomes promoted devenu devenue devient promu promue")
MARKS = NOW | CHANGING
"""Words that tell of a change, and so that what they tell is not what was."""
ENDS = _words(
    """left quit discharged stopped stops sold dropped removed gone cancelled canceled abandoned retired ended gave
    lost disabled deprecated deleted resigned quitte arrete arreter cesse sorti sortie vendu vendue abandonne
    supprime supprimee resilie resiliee retire retiree perdu demissionne disparu"""
)
"""Words that end what they are told of."""
MAY = _words("can could may might peut peuvent pouvons pouvez puede pueden kann konnen")
"""Who may do one thing may do another."""
SEVERAL = _words(
    """brother sister son daughter child friend cousin uncle aunt colleague neighbour neighbor member student
    pupil frere
    soeur fils fille enfant ami amie cousine oncle tante collegue voisin voisine membre eleve"""
)
"""What somebody has several of, although each is called `the`."""
RATHER = _words("over rather instead plutot lieu")
"""Between what is preferred and what is not."""
FOREMOST = _words("default primary current usual official principal principale officiel officielle actuel actuelle")
"""Of what is called so there is one: the default branch, la version actuelle."""
ADDS = _words("also too additionally another besides aussi egalement autre outre")
PLANS = _words(
    """hopes wishes considered considering considers evaluated evaluating thinking dreams intends wanted
    might maybe voudrait voudraient souhaite souhaitent espere envisage envisagent aimerait projette reflechit
    songe proposed discussed"""
)
"""What is wished or weighed is no fact that another fact takes the place of."""
PASTS = _words("lived worked used had was were habitait travaillait utilisait avait etait vivait")
"""Tenses that, with a year, tell what held then and not what holds."""

STATES = _sides(
    """
    ill sick unwell malade souffrant souffrante broken casse hospitalized hospitalised hospitalise injured
        blesse / cured recovered healed healthy gueri guerie retabli retablie remis remise soigne well;
    pregnant enceinte expecting / birth accouche delivered;
    single celibataire / engaged fiance fiancee fiances / married marie mariee maries epouse pacse pacsee /
        divorced divorce divorcee separated separes separe separee broke / widowed veuf veuve;
    alive vivant vivante sante / died dead deceased passed mort morte decede decedee;
    broken broke leaks leaking leak down failing fails casse cassee panne fuit plante bloque maintenance /
        repaired fixed works working restored repare reparee marche fonctionne retabli resolved corrige;
    bug open unresolved ouvert ouverte / fixed solved resolved closed corrige corrigee resolu resolue ferme
        fermee;
    unpaid impaye impayee owed due / paid paye payee regle reglee settled;
    pending waiting attente / granted accepted obtained accorde accordee obtenu obtenue;
    active actif / cancelled canceled expired suspended inactive resilie resiliee expire suspendu suspendue;
    holiday vacation leave conge conges vacances absent absente / back revenu revenue rentre rentree returned;
    unemployed jobless chomage / hired employed embauche embauchee;
    looking searching seeking cherche recherche / found got trouve trouvee;
    alone seul seule / shares share colocation flatmates flatmate couple together;
    vegetarian vegan vegetarien vegetarienne vegetalien / meat viande;
    badly poorly mal / well bien;
    profitable rentable / loses loss perte pertes deficit;
    primary primaire maternelle nursery / secondary college lycee"""
)
"""Classes of states that exclude each other in one subject at one time, as any dictionary has them."""
STATES_OF: dict[str, list[tuple[int, int]]] = {}
for _number, _sides_of in enumerate(STATES):
    for _place, _side in enumerate(_sides_of):
        for _word in _side.split():
            STATES_OF.setdefault(_word, []).append((_number, _place))
OPPOSITES = _sides(
    """
    like likes love loves enjoy enjoys adore adores aime aiment adore adorent stand supporte supporter / hate
        hates dislike dislikes detest detests loathes deteste detestent hait;
    on enabled active activated active activee actives / off disabled inactive desactive desactivee desactives;
    open opens ouvert ouverte ouverts / closed closes ferme fermee fermes;
    allowed permitted authorized authorised autorise autorisee permis / forbidden banned prohibited interdit
        interdite;
    mandatory required obligatoire / optional facultatif facultative optionnel;
    public publique / private prive privee;
    fast quick rapide / slow lent lente;
    light clair claire / dark sombre fonce;
    long longs longues detailed detaille detaillees / short brief concise court courte courtes courts bref
        breves;
    full plein pleine / empty vide;
    succeeds passes succeed pass reussit reussissent / fails failing fail echoue echouent;
    accepts accepted approved accepte approuve / rejects rejected refused refuse rejete;
    manual manually manuel manuelle / automatic automatically automated automatique automatise;
    before avant / after apres;
    first premier premiere / last dernier derniere;
    available disponible / unavailable indisponible;
    up increasing hausse / down decreasing baisse;
    hot warm chaud chaude / cold froid froide;
    cheap / expensive;
    easy facile / difficult hard difficile;
    electric electrique / diesel petrol essence"""
)
OPPOSITE_OF = {
    word: (number, place)
    for number, sides in enumerate(OPPOSITES)
    for place, side in enumerate(sides)
    for word in side.split()
}
KINDS = _groups(
    """
    english french german spanish italian anglais francais allemand espagnol italien dutch polish chinese;
    red green blue yellow white black orange grey gray brown pink purple rouge vert verte bleu bleue jaune blanc
        blanche noir noire gris grise brun rose violet"""
)
"""Values of one kind: a thing that has one of these has no other of it at the same time."""
