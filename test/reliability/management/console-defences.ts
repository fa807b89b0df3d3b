/** The list of defences of the console of one cluster, for `management-defences.ts`: link, session, origin, page. */
import type { Defence } from './defence.ts'

const CONSOLE = 'src/component/console'
const TEST = 'test/integration/console/one-cluster.test.ts'
const ACCEPTS = 'accepts requests of its page only'

export const CONSOLE_DEFENCES: readonly Defence[] = [
  {
    attack: 'another name that leads to the console of this machine',
    file: `${CONSOLE}/one-cluster/handler.ts`,
    text: 'if (!isOwnHost(exchange.authority, parts.port)) return',
    without: "if (!isOwnHost(exchange.authority, parts.port) && exchange.path === '') return",
    test: [TEST, ACCEPTS],
  },
  {
    attack: 'console of one cluster without a session',
    file: `${CONSOLE}/one-cluster/handler.ts`,
    text: 'parts.sessions.find(cookieValues(cookie, cookieName(parts.port)))',
    without: 'parts.sessions.find([...cookieValues(cookie, cookieName(parts.port)), parts.sessions.start()])',
    test: [TEST, ACCEPTS],
  },
  {
    attack: 'reads of other ports through the console',
    file: `${CONSOLE}/one-cluster/cluster-route.ts`,
    text: "isFromOtherOrigin(exchange, 'http') ? FOREIGN : cookieProblem(exchange, 'http')",
    without: "isFromOtherOrigin(exchange, 'http') && FOREIGN === '' ? FOREIGN : cookieProblem(exchange, 'http')",
    test: [TEST, ACCEPTS],
  },
  {
    attack: 'writes without X-HK through the console',
    file: `${CONSOLE}/one-cluster/cluster-route.ts`,
    text: "? FOREIGN : cookieProblem(exchange, 'http')",
    without: '? FOREIGN : cookieProblem(exchange, FOREIGN as never) && undefined',
    test: [TEST, ACCEPTS],
  },
  {
    attack: 'scripts of the cluster in the console',
    file: `${CONSOLE}/one-cluster/cluster-route.ts`,
    text: "if (!isReadableAs(exchange.headers['sec-fetch-dest'])) throw",
    without: "if (!isReadableAs(exchange.headers['sec-fetch-dest']) && exchange.path === '') throw",
    test: [TEST, ACCEPTS],
  },
  {
    attack: 'a path that the cluster of the console decodes differently',
    file: `${CONSOLE}/one-cluster/cluster-route.ts`,
    text: 'if (refusal !== undefined) throw badRequestError(refusal)',
    without: 'if (refusal === rest) throw badRequestError(refusal)',
    test: [TEST, 'refuses paths that can be read in more than one way, and other clusters'],
  },
  {
    attack: 'cookies of the console that reach the cluster',
    file: `${CONSOLE}/one-cluster/cluster-route.ts`,
    text: 'isWithheld: isWithheldFromClusters, ',
    without: 'isWithheld: (name) => name === isWithheldFromClusters.name, ',
    test: [TEST, 'gets no cookies, no credentials and no claimed identity'],
  },
  {
    attack: 'a link of the console that is used twice',
    file: `${CONSOLE}/one-cluster/login-code.ts`,
    text: "    this.#code = this.#create()\n    return 'accepted'",
    without: "    return 'accepted'",
    test: [TEST, 'works once by a link, and makes a new link'],
  },
  {
    attack: 'links of the console that are guessed',
    file: `${CONSOLE}/one-cluster/login-code.ts`,
    text: "if (this.#isBusy()) return 'too-many'",
    without: "if (this.#isBusy() && code === '') return 'too-many'",
    test: [TEST, 'refuses wrong codes, and many of them with 429'],
  },
  {
    attack: 'links of the console that other sites use up',
    file: `${CONSOLE}/one-cluster/handler.ts`,
    text: 'if (!isOpenedByUser(exchange)) return',
    without: "if (!isOpenedByUser(exchange) && exchange.path === '') return",
    test: [TEST, 'needs a user who opens the link: the code stays valid otherwise'],
  },
  {
    attack: 'watches that outlive the session of the console',
    file: `${CONSOLE}/one-cluster/sessions.ts`,
    text: "session.ending.abort(new Error('The session has ended'))",
    without: 'session.usedAtMs = 0',
    test: [`${CONSOLE}/one-cluster/sessions.test.ts`, 'ends a session after 16 hours, with the requests under way'],
  },
  {
    attack: 'sessions of the console that never become idle',
    file: `${CONSOLE}/one-cluster/sessions.ts`,
    text: '(open === 0 && nowMs - usedAtMs >= IDLE_MS)',
    without: '(open < 0 && nowMs - usedAtMs >= IDLE_MS)',
    test: [TEST, 'expires an hour after its last request'],
  },
  {
    attack: 'files of the page that are not listed',
    file: `${CONSOLE}/page-files.ts`,
    text: 'if (type === undefined) return []',
    without: "if (type === '') return []",
    test: [`${CONSOLE}/page-files.test.ts`, ''],
  },
]
