import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { jwtIssuers, parseAuthenticationConfig } from './authentication-config.ts'

const SERVICE_ACCOUNTS = 'https://kubernetes.default.svc'
const parse = (rest: object) =>
  parseAuthenticationConfig(
    JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration', ...rest }),
    [SERVICE_ACCOUNTS],
  )

const ISSUER = { url: 'https://id.example.com', audiences: ['us'] }
const USERNAME = { claim: 'sub', prefix: '' }
const jwt = (issuer: object = {}, more: object = {}): object => ({
  jwt: [{ issuer: { ...ISSUER, ...issuer }, claimMappings: { username: USERNAME }, ...more }],
})

describe('AuthenticationConfiguration file', () => {
  it('lists accepted issuers and the mapping of their claims to users', () => {
    const settings = parse({
      jwt: [
        {
          issuer: {
            url: 'https://a.example.com',
            discoveryURL: 'https://a.internal/.well-known/openid-configuration',
            audiences: ['x', 'y'],
            audienceMatchPolicy: 'MatchAny',
          },
          claimValidationRules: [{ claim: 'hd', requiredValue: 'example.com' }],
          claimMappings: {
            username: { claim: 'email', prefix: 'a:' },
            groups: { claim: 'roles', prefix: '' },
            uid: { claim: 'oid' },
          },
        },
        { issuer: { ...ISSUER }, claimMappings: { username: USERNAME } },
      ],
    })
    const shown = jwtIssuers(settings, createVirtualClock()).map(({ fetchJson: _fetch, signingAlgs, ...rest }) => ({
      ...rest,
      algorithms: signingAlgs?.length,
    }))
    assert.deepEqual(shown, [
      {
        issuerUrl: 'https://a.example.com',
        discoveryUrl: 'https://a.internal/.well-known/openid-configuration',
        clientId: 'x',
        audiences: ['x', 'y'],
        usernameClaim: 'email',
        literalPrefix: 'a:',
        groupsClaim: 'roles',
        groupsPrefix: '',
        uidClaim: 'oid',
        requiredClaims: { hd: 'example.com' },
        algorithms: 9,
      },
      {
        issuerUrl: 'https://id.example.com',
        clientId: 'us',
        audiences: ['us'],
        usernameClaim: 'sub',
        literalPrefix: '',
        groupsClaim: '',
        groupsPrefix: '',
        uidClaim: '',
        requiredClaims: {},
        algorithms: 9,
      },
    ])
  })

  it('may be empty, and may restrict the paths for anonymous users', () => {
    assert.deepEqual(parse({}), { jwt: [] })
    const anonymous = { enabled: true, conditions: [{ path: '/livez' }] }
    assert.deepEqual(parse({ anonymous }).anonymous, { enabled: true, paths: ['/livez'] })
  })

  const url = 'jwt[0].issuer.url'
  const mappings = 'jwt[0].claimMappings'
  const wrong: readonly (readonly [string, object, string])[] = [
    ['no issuer URL', jwt({ url: '' }), `${url}: Required value`],
    [
      'an issuer URL with a query',
      jwt({ url: 'http://u:p@x?q#f' }),
      `[${['URL scheme must be https', 'URL must not contain a username or password', 'URL must not contain a query', 'URL must not contain a fragment'].map((what) => `${url}: Invalid value: "http://u:p@x?q#f": ${what}`).join(', ')}]`,
    ],
    [
      'the issuer of ServiceAccount tokens',
      jwt({ url: SERVICE_ACCOUNTS }),
      `${url}: Invalid value: "${SERVICE_ACCOUNTS}": URL must not overlap with disallowed issuers: [${SERVICE_ACCOUNTS}]`,
    ],
    [
      'a repeated issuer',
      { jwt: [...(jwt() as { jwt: object[] }).jwt, ...(jwt() as { jwt: object[] }).jwt] },
      'jwt[1].issuer.url: Duplicate value: "https://id.example.com"',
    ],
    [
      'a discovery URL that equals the issuer',
      jwt({ discoveryURL: 'https://id.example.com/' }),
      'jwt[0].issuer.discoveryURL: Invalid value: "https://id.example.com/": discoveryURL must be different from URL',
    ],
    [
      'no audience',
      jwt({ audiences: [] }),
      'jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required',
    ],
    [
      'several audiences without a match policy',
      jwt({ audiences: ['a', 'a', ''] }),
      '[jwt[0].issuer.audiences[1]: Duplicate value: "a", jwt[0].issuer.audiences[2]: Required value, jwt[0].issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences]',
    ],
    [
      'invalid certificate authorities',
      jwt({ certificateAuthority: 'zz' }),
      'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates',
    ],
    [
      'an egress selector',
      jwt({ egressSelectorType: 'cluster' }),
      'jwt[0].issuer.egressSelectorType: Invalid value: "cluster": egress selectors are not supported by this server: connections are made directly',
    ],
    [
      'no user name claim',
      jwt({}, { claimMappings: {} }),
      `${mappings}.username: Required value: claim or expression is required`,
    ],
    [
      'no prefix',
      jwt({}, { claimMappings: { username: { claim: 'sub' } } }),
      `${mappings}.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing`,
    ],
    [
      'expressions that are invalid or not boolean',
      jwt(
        {},
        {
          claimMappings: {
            username: { expression: 'sub' },
            groups: { expression: 'claims.groups' },
            uid: { expression: '1 +' },
            extra: [{ key: 'example.com/x', valueExpression: 'user.name' }],
          },
          claimValidationRules: [{ expression: 'claims.x' }, { expression: 'true' }, { expression: 'true' }],
          userValidationRules: [{ expression: 'user.zork == 1' }, { expression: 'user.username' }],
        },
      ),
      `[${[
        'jwt[0].claimValidationRules[0].expression: Invalid value: "claims.x": must evaluate to bool',
        'jwt[0].claimValidationRules[2].expression: Duplicate value: "true"',
        `${mappings}.username.expression: Invalid value: "sub": compilation failed: ERROR: <input>:1:1: undeclared reference to 'sub' (in container '')\n | sub\n | ^`,
        `${mappings}.uid.expression: Invalid value: "1 +": compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^`,
        `${mappings}.extra[0].valueExpression: Invalid value: "user.name": compilation failed: ERROR: <input>:1:1: undeclared reference to 'user' (in container '')\n | user.name\n | ^`,
        `jwt[0].userValidationRules[0].expression: Invalid value: "user.zork == 1": compilation failed: ERROR: <input>:1:5: undefined field 'zork'\n | user.zork == 1\n | ....^`,
        'jwt[0].userValidationRules[1].expression: Invalid value: "user.username": must evaluate to bool',
      ].join(', ')}]`,
    ],
    [
      'the email claim without email_verified',
      jwt({}, { claimMappings: { username: { expression: 'claims.email' } } }),
      `${mappings}.username.expression: Invalid value: "claims.email": claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression`,
    ],
    [
      'reserved extra keys',
      jwt({}, { claimMappings: { username: USERNAME, extra: [{ key: 'Foo' }, { key: 'a.k8s.io/x' }] } }),
      `[${mappings}.extra[0].key: Invalid value: "Foo": must be a domain-prefixed path (such as "acme.io/foo"), ${mappings}.extra[0].key: Invalid value: "Foo": must be lowercase, ${mappings}.extra[0].valueExpression: Required value, ${mappings}.extra[1].key: Invalid value: "a.k8s.io/x": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use, ${mappings}.extra[1].valueExpression: Required value]`,
    ],
    [
      'anonymous conditions while anonymous access is disabled',
      { anonymous: { enabled: false, conditions: [{ path: '/x' }] } },
      'anonymous.conditions: Invalid value: [{"Path":"/x"}]: enabled should be set to true when conditions are defined',
    ],
  ]
  for (const [what, rest, message] of wrong) {
    it(`is refused if it has ${what}`, () => {
      const whole = `invalid authentication configuration: ${message}`
      assert.throws(() => parse(rest), { name: 'InvalidAuthentication', message: whole })
    })
  }
})
