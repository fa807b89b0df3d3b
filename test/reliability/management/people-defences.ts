/**
 * The list of defences of accounts, for `management-defences.ts`: log-in, sessions, tokens, identity providers and
 * the first log-in.
 */
import { type Defence, INTEGRATION, PEOPLE } from './defence.ts'

export const PEOPLE_DEFENCES: readonly Defence[] = [
  {
    attack: 'a Host of another site as the origin of a cookie',
    file: 'src/component/console/csrf.ts',
    text: 'sent.host === own.host && ',
    without: '',
    test: ['src/component/console/csrf.test.ts', ''],
  },
  {
    attack: 'requests of other sites with the cookie',
    file: `${PEOPLE}/authenticate.ts`,
    text: "hasCookie ? cookieProblem(exchange, 'https') : undefined",
    without: "hasCookie && exchange.method === cookieProblem.name ? cookieProblem(exchange, 'https') : undefined",
    test: [
      `${PEOPLE}/authenticate.test.ts`,
      'refuses a cookie in a write from another site, and accepts it from pages of this server',
    ],
  },
  {
    attack: 'a WebSocket of another site with the cookie',
    file: 'src/component/console/csrf.ts',
    text: 'return isOwnOrigin(request, scheme) ? undefined : FOREIGN',
    without: 'return undefined',
    test: ['src/component/console/csrf.test.ts', ''],
  },
  {
    attack: 'log-in forms of other sites',
    file: `${PEOPLE}/routes/login.ts`,
    text: "if (isFromOtherOrigin(call.exchange, 'https')) throw",
    without: "if (isFromOtherOrigin(call.exchange, 'https') && call.address === '') throw",
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
    attack: 'sessions that are no longer used',
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
    test: [
      `${PEOPLE}/first-login/first-login.test.ts`,
      'is protected by a delay after wrong attempts, and stored only as a hash',
    ],
  },
  {
    attack: 'text of a request in the page of the first log-in',
    file: `${PEOPLE}/first-login/page.ts`,
    text: '`<p role="alert">${escapeHtml(problem)}</p>`',
    without: '`<p role="alert">${problem}<script></script></p>`',
    test: [`${PEOPLE}/first-login/first-login.test.ts`, 'escapes text from the request'],
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
    test: [
      `${INTEGRATION}/ldap.test.ts`,
      'refuses wrong and empty passwords, unknown usernames, and filters as usernames',
    ],
  },
  {
    attack: 'LDAP filters in usernames',
    file: `${PEOPLE}/ldap/filter.ts`,
    text: '(${attribute}=${escapeValue(value)})',
    without: '(${attribute}=${value})',
    test: [`${PEOPLE}/ldap/directory.test.ts`, 'escapes filter characters in the username'],
  },
  {
    attack: 'answers that are put before TLS of LDAP',
    file: `${PEOPLE}/ldap/start-tls.ts`,
    text: 'if (message.end !== bytes.length)',
    without: 'if (message.end > bytes.length)',
    test: [`${PEOPLE}/ldap/start-tls.test.ts`, 'is refused with a whole message after it'],
  },
  {
    attack: 'a second LDAP connection, without TLS',
    file: `${PEOPLE}/ldap/connection.ts`,
    text: "if (isTaken || socket.destroyed) throw new ProviderError('The connection has ended')",
    without:
      'if (isTaken) return connectTcp({ host: new URL(address.url).hostname, port: Number(new URL(address.url).port) })',
    test: [`${INTEGRATION}/ldap.test.ts`, 'is not connected to again, without TLS, for a later request'],
  },
  {
    attack: 'a password for a user with more rights',
    file: `${PEOPLE}/routes/users.ts`,
    text: 'if (password !== undefined && !permissions.coversUser(person.user, user))',
    without: 'if (password !== undefined && !permissions.coversUser(person.user, person.user))',
    test: [
      `${INTEGRATION}/roles.test.ts`,
      'let users with users-manage change accounts, but not log in as users with more permissions',
    ],
  },
]
