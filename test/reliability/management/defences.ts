/**
 * The defences of the management server. Each row names a replacement that disables one of them, and the test that must
 * fail then.
 */

export interface Defence {
  /** The attack that it repels. */
  readonly attack: string
  /** Below the repository. */
  readonly file: string
  /** Occurs exactly once in the file. */
  readonly text: string
  readonly without: string
  /** The file of the test, and its name. */
  readonly test: readonly [file: string, name: string]
}

const MANAGEMENT = 'src/management'
const PEOPLE = `${MANAGEMENT}/people`
const INTEGRATION = 'test/integration/management'

export const DEFENCES: readonly Defence[] = [
  {
    attack: 'headers that claim an identity',
    file: 'src/component/forwarding/headers.ts',
    text: '&& !IDENTITY.test(name)) out[name]',
    without: ') out[name]',
    test: [`${INTEGRATION}/smuggling.test.ts`, 'carry only the identity of their user, over HTTP/1.1'],
  },
  {
    attack: 'headers with "_" in their names, cookies and addresses',
    file: `${MANAGEMENT}/proxy/cluster-headers.ts`,
    text: 'return WITHHELD.test(name)',
    without: 'return name === WITHHELD.source',
    test: [`${INTEGRATION}/smuggling.test.ts`, 'carry only the identity of their user, over HTTP/2'],
  },
  {
    attack: 'tokens in WebSocket subprotocols that reach the cluster',
    file: 'src/component/forwarding/headers.ts',
    text: '!name.trim().startsWith(TOKEN_PROTOCOL)',
    without: 'name.trim() !== TOKEN_PROTOCOL',
    test: [
      `${INTEGRATION}/credentials.test.ts`,
      'in a WebSocket subprotocol are not sent to the cluster, with and without an upgrade',
    ],
  },
  {
    attack: 'paths with "..", "//" and encoded slashes',
    file: `${MANAGEMENT}/proxy/cluster-proxy.ts`,
    text: 'if (refusal !== undefined) throw badRequestError(refusal)',
    without: 'if (refusal === rest) throw badRequestError(refusal)',
    test: [`${INTEGRATION}/server.test.ts`, 'refuses paths that servers could decode differently'],
  },
  {
    attack: 'relative segments before the routes',
    file: `${MANAGEMENT}/port/request-path.ts`,
    text: "if (text === '.' || text === '..')",
    without: "if (text === '...')",
    test: [`${MANAGEMENT}/port/request-path.test.ts`, ''],
  },
  {
    attack: 'a Host of another site as the origin of a cookie',
    file: `${PEOPLE}/csrf.ts`,
    text: 'sent.host === own.host && ',
    without: '',
    test: [`${PEOPLE}/csrf.test.ts`, ''],
  },
  {
    attack: 'a token of one cluster in another',
    file: `${MANAGEMENT}/port/port.ts`,
    text: "(params['cluster'] ?? cluster) !== cluster",
    without: 'cluster === params[cluster]',
    test: [`${INTEGRATION}/credentials.test.ts`, 'for one cluster are refused everywhere else'],
  },
  {
    attack: 'writes with a read-only token',
    file: `${MANAGEMENT}/port/port.ts`,
    text: 'token.spec.readOnly === true && !isRead',
    without: 'token.spec.readOnly === true && isRead && !isRead',
    test: [`${INTEGRATION}/credentials.test.ts`, 'that are read-only allow no upgrades and no writes'],
  },
  {
    attack: 'routes without credentials',
    file: `${MANAGEMENT}/port/port.ts`,
    text: "if (person === undefined) throw unauthorizedError('Unauthorized')",
    without: 'if (person === undefined) return',
    test: [`${INTEGRATION}/access-table.test.ts`, 'respond to every kind of caller as in the table'],
  },
  {
    attack: 'requests of other sites with the cookie',
    file: `${PEOPLE}/authenticate.ts`,
    text: 'hasCookie ? cookieProblem(exchange) : undefined',
    without: 'hasCookie && exchange.method === cookieProblem.name ? cookieProblem(exchange) : undefined',
    test: [
      `${PEOPLE}/authenticate.test.ts`,
      'refuses a cookie in a write from another site, and accepts it from pages of this server',
    ],
  },
  {
    attack: 'a WebSocket of another site with the cookie',
    file: `${PEOPLE}/csrf.ts`,
    text: 'return isOwnOrigin(request) ? undefined : FOREIGN',
    without: 'return undefined',
    test: [`${PEOPLE}/csrf.test.ts`, ''],
  },
  {
    attack: 'log-in forms of other sites',
    file: `${PEOPLE}/routes/login.ts`,
    text: 'if (isFromOtherOrigin(call.exchange)) throw',
    without: "if (isFromOtherOrigin(call.exchange) && call.address === '') throw",
    test: [`${PEOPLE}/people.test.ts`, 'refuses other sites, unknown fields, wrong types and large bodies'],
  },
  {
    attack: 'a session that was planted before the log-in',
    file: `${PEOPLE}/sessions.ts`,
    text: 'if (caller !== undefined) await this.#tokens.end(caller.token)',
    without: 'if (caller === undefined) return',
    test: [`${PEOPLE}/people.test.ts`, 'starts a new session at each log-in, and ends the previous one of the browser'],
  },
  {
    attack: 'sessions of an old password',
    file: `${PEOPLE}/users.ts`,
    text: 'await this.#options.tokens.endOfUser(name, (token) => !isSession(token))',
    without: 'await this.#options.tokens.endOfUser(name, (token) => !isSession(token) || isSession(token))',
    test: [`${PEOPLE}/people.test.ts`, 'changes the password, ends all sessions and starts a new one for this browser'],
  },
  {
    attack: 'sessions that nobody uses any more',
    file: `${PEOPLE}/tokens.ts`,
    text: 'return spec.idleSeconds !== undefined && now',
    without: 'return spec.idleSeconds === -1 && now',
    test: [`${PEOPLE}/sessions.test.ts`, 'end after an hour without requests, and after 16 hours'],
  },
  {
    attack: 'tokens without an end',
    file: `${PEOPLE}/tokens.ts`,
    text: 'if (now >= epochMsOf(spec.expiresAt)) return true',
    without: 'if (now < 0) return true',
    test: [`${PEOPLE}/tokens.test.ts`, 'refuse expired tokens'],
  },
  {
    attack: 'the name of a token without its secret',
    file: `${PEOPLE}/tokens.ts`,
    text: 'token === undefined || !isRight || ',
    without: 'token === undefined || ',
    test: [`${PEOPLE}/tokens.test.ts`, 'refuse malformed, foreign and changed tokens'],
  },
  {
    attack: 'tokens of disabled users',
    file: `${PEOPLE}/tokens.ts`,
    text: 'if (user === undefined || user.spec.disabled === true) return undefined',
    without: 'if (user === undefined) return undefined',
    test: [`${PEOPLE}/tokens.test.ts`, 'refuse tokens of disabled and of deleted users, and disabled tokens'],
  },
  {
    attack: 'guessing of passwords',
    file: `${PEOPLE}/login-throttle.ts`,
    text: 'if (waitMs > 0) return Math.ceil(waitMs / 1000)',
    without: 'if (waitMs < 0) return Math.ceil(waitMs / 1000)',
    test: [
      `${PEOPLE}/people.test.ts`,
      'refuses 10,000 tries in a minute with 429 and Retry-After, and the right password later is accepted',
    ],
  },
  {
    attack: 'a flood of passwords to hash',
    file: `${PEOPLE}/passwords.ts`,
    text: 'if (this.#running >= MAX_RUNNING) await this.#turn()',
    without: 'if (this.#running < 0) await this.#turn()',
    test: [`${PEOPLE}/passwords.test.ts`, 'computes at most two at once and refuses when 50 wait'],
  },
  {
    attack: 'X-Forwarded-For of anybody',
    file: `${MANAGEMENT}/port/client-address.ts`,
    text: 'while (isTrusted(address) && chain.length > 0)',
    without: 'while (chain.length > 0)',
    test: [`${MANAGEMENT}/port/client-address.test.ts`, 'is the peer address if X-Forwarded-For comes from a client'],
  },
  {
    attack: 'a link for the first log-in a second time',
    file: `${PEOPLE}/users.ts`,
    text: 'await this.#secrets.create(name, hash)',
    without: 'await this.#secrets.write(name, hash)',
    test: [`${PEOPLE}/first-login/first-login.test.ts`, 'works once, also for two requests at the same time'],
  },
  {
    attack: 'an old link for the first log-in',
    file: `${PEOPLE}/first-login/first-login.ts`,
    text: 'isSameHash(hash, one.hash) && Date.parse(one.expiresAt) > now',
    without: 'isSameHash(hash, one.hash) && Date.parse(one.expiresAt) > now - now',
    test: [`${PEOPLE}/first-login/first-login.test.ts`, 'expires after an hour'],
  },
  {
    attack: 'guessing of the code for the first log-in',
    file: `${PEOPLE}/first-login/routes.ts`,
    text: 'if (waitSeconds > 0)',
    without: 'if (waitSeconds < 0)',
    test: [`${PEOPLE}/first-login/first-login.test.ts`, 'cannot be guessed quickly, and is not stored'],
  },
  {
    attack: 'text of a request in the page of the first log-in',
    file: `${PEOPLE}/first-login/page.ts`,
    text: '`<p role="alert">${escapeHtml(problem)}</p>`',
    without: '`<p role="alert">${problem}<script></script></p>`',
    test: [`${PEOPLE}/first-login/first-login.test.ts`, 'shows nothing of the request but escaped text'],
  },
  {
    attack: 'an ID token for another log-in',
    file: `${PEOPLE}/oidc/id-token.ts`,
    text: "if (!isSame(claims['nonce'], nonce))",
    without: "if (!isSame(claims['nonce'], nonce) && nonce === '')",
    test: [`${PEOPLE}/oidc/login.test.ts`, ''],
  },
  {
    attack: 'a log-in that another browser began',
    file: `${PEOPLE}/oidc/login.ts`,
    text: "if (login?.provider !== name || !isSame(query.getAll('state'), login.state)) {",
    without: 'if (login === undefined) {',
    test: [
      `${PEOPLE}/oidc/login.test.ts`,
      'is refused: another state, several states, no code, an error, another issuer',
    ],
  },
  {
    attack: 'a return to another site',
    file: `${PEOPLE}/oidc/return-to.ts`,
    text: "if (url === null || url.origin !== BASE || url.pathname.startsWith('//')) return undefined",
    without: 'if (url === null) return undefined',
    test: [`${PEOPLE}/oidc/return-to.test.ts`, ''],
  },
  {
    attack: 'an LDAP bind without a password',
    file: `${PEOPLE}/ldap/directory.ts`,
    text: 'return length > 0 && length <= max',
    without: 'return length <= max',
    test: [`${INTEGRATION}/ldap.test.ts`, 'refuses wrong and empty passwords, unknown names and filters as names'],
  },
  {
    attack: 'LDAP filters in usernames',
    file: `${PEOPLE}/ldap/filter.ts`,
    text: '(${attribute}=${escapeValue(value)})',
    without: '(${attribute}=${value})',
    test: [`${PEOPLE}/ldap/directory.test.ts`, 'does not take text of the user for a filter'],
  },
  {
    attack: 'answers that are put before TLS of LDAP',
    file: `${PEOPLE}/ldap/start-tls.ts`,
    text: 'if (message.end !== bytes.length)',
    without: 'if (message.end > bytes.length)',
    test: [`${PEOPLE}/ldap/start-tls.test.ts`, 'is refused with a whole message behind it'],
  },
  {
    attack: 'a second LDAP connection, without TLS',
    file: `${PEOPLE}/ldap/connection.ts`,
    text: "if (isTaken) throw new ProviderError('The connection has ended')",
    without:
      'if (isTaken) return connectTcp({ host: new URL(address.url).hostname, port: Number(new URL(address.url).port) })',
    test: [`${INTEGRATION}/ldap.test.ts`, 'is not connected to a second time when it closes the connection'],
  },
  {
    attack: 'a role with more rights than the caller has',
    file: `${MANAGEMENT}/access/role-rules.ts`,
    text: 'if (missing.length === 0) return',
    without: 'if (missing.length >= 0) return',
    test: [`${INTEGRATION}/roles.test.ts`, 'of a cluster are given by those who have all their rights in it'],
  },
  {
    attack: 'a role that is widened where others have it',
    file: `${MANAGEMENT}/roles/role-routes.ts`,
    text: 'requireAtMembers(options, call, { name, spec })',
    without: 'void requireAtMembers',
    test: [
      `${INTEGRATION}/roles.test.ts`,
      'are widened only by those who have the rights wherever a member has the role',
    ],
  },
  {
    attack: 'a password for a user with more rights',
    file: `${PEOPLE}/routes/users.ts`,
    text: 'if (password !== undefined && !permissions.coversUser(person.user, user))',
    without: 'if (password !== undefined && !permissions.coversUser(person.user, person.user))',
    test: [`${INTEGRATION}/roles.test.ts`, 'let holders of users-manage change accounts, but not become others'],
  },
  {
    attack: 'a namespace of a foreign project',
    file: `${MANAGEMENT}/roles/namespace-routes.ts`,
    text: '  requireEnd(options, call, { cluster, project: to, name })',
    without: '  void to',
    test: [`${INTEGRATION}/roles.test.ts`, 'let a namespace move between projects only for those who manage both'],
  },
  {
    attack: 'a namespace without a project in an own project',
    file: `${MANAGEMENT}/roles/project-routes.ts`,
    text: "if (names.length === 0 || allows(permissions.inCluster(person.user, cluster), 'manage', 'namespaces')) return",
    without: 'if (names.length >= 0 || cluster === person.user.spec.username || permissions === undefined) return',
    test: [`${INTEGRATION}/roles.test.ts`, 'let creators of projects own theirs, and no namespace of others'],
  },
  {
    attack: 'impersonation without the right in the cluster',
    file: `${MANAGEMENT}/proxy/impersonation.ts`,
    text: 'if (!isAllowed || status?.denied === true)',
    without: 'if (!isAllowed && status === null)',
    test: [`${INTEGRATION}/server.test.ts`, 'lets users impersonate users of the server, if the cluster allows it'],
  },
  {
    attack: 'impersonation of administrators of the management cluster',
    file: `${MANAGEMENT}/proxy/impersonation.ts`,
    text: 'if (foreign !== undefined)',
    without: 'if (foreign === user)',
    test: [`${MANAGEMENT}/proxy/impersonation.test.ts`, ''],
  },
  {
    attack: 'a server that was taken over and impersonates others',
    file: 'src/cluster-agent/caller.ts',
    text: 'if (users.length !== 1 || !(isUserOfServer(user) || user === SERVER))',
    without: 'if (users.length !== 1)',
    test: [
      `${INTEGRATION}/hostile-server.test.ts`,
      'impersonates only users of the management server, and forwards none of their credentials',
    ],
  },
  {
    attack: 'a server that was taken over and leaves the path of the API server',
    file: 'src/cluster-agent/api-proxy.ts',
    text: 'if (!isPlainPath(exchange.path))',
    without: "if (!isPlainPath(exchange.path) && exchange.method === '')",
    test: [`${INTEGRATION}/hostile-server.test.ts`, 'forwards no path that leads outside of its API server'],
  },
  {
    attack: 'open watches of users without rights',
    file: `${MANAGEMENT}/proxy/open-requests.ts`,
    text: 'if (!this.#isAllowed(open)) open.controller.abort',
    without: 'if (!this.#isAllowed(open) && open.person.hasCookie) open.controller.abort',
    test: [`${INTEGRATION}/credentials.test.ts`, 'end their open watches when they become invalid'],
  },
  {
    attack: 'cookies and other headers that a cluster sets',
    file: `${MANAGEMENT}/proxy/cluster-headers.ts`,
    text: 'filter(([name]) => PASSED.has(name))',
    without: 'filter(([name]) => name !== undefined || PASSED.has(name))',
    test: [`${INTEGRATION}/hostile.test.ts`, 'cannot set headers that affect other pages of the server'],
  },
  {
    attack: 'redirects of a cluster to other routes',
    file: `${MANAGEMENT}/proxy/cluster-headers.ts`,
    text: 'const inside = location === undefined ? undefined : locationInside(location, request)',
    without: 'const inside = location === undefined ? undefined : (locationInside(location, request) ?? location)',
    test: [`${INTEGRATION}/hostile.test.ts`, 'can redirect only to its own paths'],
  },
  {
    attack: 'scripts of a cluster in pages of the server',
    file: `${MANAGEMENT}/proxy/cluster-proxy.ts`,
    text: "if (person.hasCookie && !isReadableAs(exchange.headers['sec-fetch-dest']))",
    without: "if (person.hasCookie && !isReadableAs(exchange.headers['sec-fetch-dest']) && cluster === '')",
    test: [`${INTEGRATION}/hostile.test.ts`, 'cannot serve scripts, styles or frames to pages of the server'],
  },
  {
    attack: 'streams of an agent to addresses that the server reaches',
    file: 'src/lib/tunnel/tunnel.ts',
    text: 'accept = () => undefined',
    without: 'accept = () => (stream) => void stream.end()',
    test: [`${INTEGRATION}/hostile.test.ts`, 'cannot open tunnel streams to addresses that the server reaches'],
  },
  {
    attack: 'the UID of another cluster',
    file: `${MANAGEMENT}/clusters/controllers.ts`,
    text: 'return { found: isOurs ? { ...found, uid } : found, conditions: [connected, ready] }',
    without:
      'return { found: isOurs || uid !== undefined ? { ...found, uid } : found, conditions: [connected, ready] }',
    test: [`${INTEGRATION}/hostile.test.ts`, 'cannot take over another cluster by its UID'],
  },
  {
    attack: 'a registration token that was used',
    file: `${MANAGEMENT}/links/registration-check.ts`,
    text: 'found.spec.usesLeft > 0 && ',
    without: '',
    test: [
      `${INTEGRATION}/machine-registration.test.ts`,
      'refuses a token that is used up, and lets the same machine repeat its registration',
    ],
  },
  {
    attack: 'a registration token in two requests at the same time',
    file: `${MANAGEMENT}/links/registration-check.ts`,
    text: "if (now.spec.usesLeft <= 0) throw unauthorizedError('Unauthorized')",
    without: "if (now.spec.usesLeft < -1000) throw unauthorizedError('Unauthorized')",
    test: [
      `${INTEGRATION}/hostile.test.ts`,
      'registers only as often as its registration token allows, and as one cluster',
    ],
  },
  {
    attack: 'the tunnel of a removed cluster',
    file: `${MANAGEMENT}/links/tunnel-hub.ts`,
    text: 'disconnect: (cluster) => sessions.get(cluster)?.forEach(end),',
    without: 'disconnect: () => undefined,',
    test: [
      `${INTEGRATION}/hostile.test.ts`,
      'loses its tunnel when it is removed, even if its agent does not cooperate',
    ],
  },
  {
    attack: 'the tunnel of a removed machine',
    file: `${MANAGEMENT}/links/machine-tunnels.ts`,
    text: 'disconnect: (machine) => sessions.get(machine)?.forEach(end),',
    without: 'disconnect: () => undefined,',
    test: [
      `${INTEGRATION}/machine-registration.test.ts`,
      'ends the tunnel of a removed machine and lets it clean itself',
    ],
  },
  {
    attack: 'frames of a tunnel that are too large',
    file: 'src/lib/tunnel/credit-stream.ts',
    text: 'if (body.length > MAX_DATA_BYTES) throw',
    without: 'if (body.length < 0) throw',
    test: ['src/lib/tunnel/tunnel.test.ts', ''],
  },
  {
    attack: 'more data than the window of a stream',
    file: 'src/lib/tunnel/credit-stream.ts',
    text: 'if (body.length > this.#permitted) return',
    without: 'if (body.length < 0) return',
    test: ['src/lib/tunnel/tunnel.test.ts', 'resets a stream whose peer exceeds the window'],
  },
  {
    attack: 'readers of a tunnel that never read',
    file: 'src/lib/tunnel/send-queue.ts',
    text: 'if (this.#controlBytes > MAX_CONTROL_BYTES) this.#options.overflowed()',
    without: 'if (this.#controlBytes < 0) this.#options.overflowed()',
    test: ['src/lib/tunnel/tunnel.test.ts', 'bounds the queue for a peer that does not read'],
  },
  {
    attack: 'an endless list of a cluster',
    file: `${MANAGEMENT}/clusters/cluster-client.ts`,
    text: '    maxBytes: MAX_BYTES,\n',
    without: '    maxBytes: MAX_BYTES * 1000,\n',
    test: [`${INTEGRATION}/hostile.test.ts`, 'cannot make the server read an endless list'],
  },
  {
    attack: 'connections of one user without end',
    file: `${MANAGEMENT}/proxy/open-requests.ts`,
    text: 'if (count >= MAX_OF_USER) throw',
    without: 'if (count < 0) throw',
    test: [`${MANAGEMENT}/proxy/open-requests.test.ts`, 'refuses more than 2000 requests of a user at once'],
  },
]
