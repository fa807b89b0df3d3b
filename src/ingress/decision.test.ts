import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Ingress } from '#apis/networking/v1.ts'

import { decide, type Decision, hostOf, type RoutingState } from './decision.ts'
import { routeTable } from './routes.ts'

const NGINX = 'nginx.ingress.kubernetes.io'

function routingStateWith(
  annotations: Readonly<Record<string, string>> = {},
  rest: Partial<RoutingState> = {},
): RoutingState {
  const backend = { service: { name: 'web', port: { number: 80 } } }
  const ingress = {
    metadata: { name: 'web', namespace: 'shop', annotations },
    spec: { rules: [{ host: 'web.example', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }] },
  } as unknown as Ingress
  return {
    routes: routeTable([ingress], {}),
    secureHosts: new Set(),
    endpointsOf: () => ['10.42.0.5:8080'],
    defaultBackend: undefined,
    trustsForwarded: false,
    keepsUnderscores: false,
    ...rest,
  }
}

/** A routing state with one regex path. */
function rewriting(path: string, target: string): RoutingState {
  const backend = { service: { name: 'web', port: { number: 80 } } }
  const annotations = { [`${NGINX}/rewrite-target`]: target }
  const paths = [{ path, pathType: 'ImplementationSpecific', backend }]
  const ingress = {
    metadata: { name: 'web', namespace: 'shop', annotations },
    spec: { rules: [{ host: 'web.example', http: { paths } }] },
  } as unknown as Ingress
  return routingStateWith({}, { routes: routeTable([ingress], {}) })
}

const ask = (routingState: RoutingState, target = '/', authority = 'web.example', isSecure = false): Decision =>
  decide(routingState, { authority, target, isSecure, httpsPort: 443 })

describe('routing of an ingress request', () => {
  it('passes path and query unchanged to the pods of the Service', () => {
    const decision = ask(routingStateWith(), '/a%20b?x=1&y=%2F')
    assert.deepEqual(decision, {
      is: 'pass',
      endpoints: ['10.42.0.5:8080'],
      target: '/a%20b?x=1&y=%2F',
      scheme: 'http',
      connectTimeoutMs: 5000,
      readTimeoutMs: 60_000,
      service: 'shop/web:80',
    })
  })

  for (const [requested, sent] of [
    ['/%252e%252e/x', '/%252e%252e/x'],
    ['/a%3Fb?c=d', '/a%3Fb?c=d'],
    ['/a%20b%23c', '/a%20b%23c'],
    ['/caf%C3%A9', '/caf%C3%A9'],
    ['/caf\u00c3\u00a9', '/caf%C3%A9'],
    ['/a b', '/a%20b'],
    ['/a%2Fb', '/a/b'],
    ['/x/%2e%2e/y', '/y'],
    ['/100%25', '/100%25'],
    ['/a%09b', '/a%09b'],
  ] as const)
    it(`passes ${JSON.stringify(requested)} as ${sent} with rewrite-target /$1`, () => {
      const decision = ask(rewriting('/(.*)', '/$1'), requested)
      assert.equal(decision.is === 'pass' && decision.target, sent)
    })

  for (const [target, requested, sent] of [
    ['/app/$1', '/x y', '/app/x%20y'],
    ['/?path=$1', '/a&b=c?d=e', '/?path=a%26b%3Dc&d=e'],
    ['/new?', '/old?d=e', '/new'],
    ['other/$1', '/a', '/other/a'],
    ['/caf\u00e9/$1', '/a', '/caf%C3%A9/a'],
    ['', '/a%2Fb?c', '/a%2Fb?c'],
  ] as const)
    it(`passes ${requested} as ${sent} with rewrite-target ${JSON.stringify(target)}`, () => {
      const decision = ask(rewriting('/(.*)', target), requested)
      assert.equal(decision.is === 'pass' && decision.target, sent)
    })

  it('passes arbitrary bytes of HTTP/2 paths in a form that HTTP/1.1 allows, or redirects', () => {
    const decision = ask(routingStateWith(), '/a b\u00ff?c\td')
    assert.equal(decision.is === 'answer' && decision.status, 400, 'the byte 0xff is no text')
    const passed = ask(routingStateWith(), '/a b?c\td\u00ff')
    assert.equal(passed.is === 'pass' && passed.target, '/a%20b?c%09d%FF')
    const routingState = routingStateWith({}, { secureHosts: new Set(['web.example']) })
    assert.deepEqual(ask(routingState, '/a b\r\n'), { is: 'redirect', to: 'https://web.example/a%20b%0D%0A' })
  })

  it('responds with 404 of the default backend if no path matches', () => {
    assert.deepEqual(ask(routingStateWith(), '/', 'other.example'), {
      is: 'answer',
      status: 404,
      text: 'default backend - 404',
    })
  })

  it('passes a request to a configured default backend if no path matches', () => {
    const routingState = routingStateWith({}, { defaultBackend: { namespace: 'x', service: 'd', port: 80 } })
    assert.equal(ask(routingState, '/', 'other.example').is, 'pass')
  })

  it('responds with 503 if the Service has no pods', () => {
    const decision = ask(routingStateWith({}, { endpointsOf: () => [] }))
    assert.equal(decision.is === 'answer' && decision.status, 503)
  })

  it('redirects from HTTP to HTTPS if the host has a certificate', () => {
    const routingState = routingStateWith({}, { secureHosts: new Set(['web.example']) })
    assert.deepEqual(ask(routingState, '/a?b', 'web.example:80'), { is: 'redirect', to: 'https://web.example/a?b' })
    assert.equal(ask(routingState, '/a?b', 'web.example', true).is, 'pass')
    const off = routingStateWith({ [`${NGINX}/ssl-redirect`]: 'false' }, { secureHosts: new Set(['web.example']) })
    assert.equal(ask(off).is, 'pass')
    assert.equal(ask(routingStateWith({ [`${NGINX}/force-ssl-redirect`]: 'true' })).is, 'redirect')
  })

  it('refuses a request if an unsupported annotation would restrict access', () => {
    const decision = ask(routingStateWith({ [`${NGINX}/whitelist-source-range`]: '10.0.0.0/8' }))
    assert.equal(decision.is === 'answer' && decision.status, 503)
  })
})

describe('hostOf() for an ingress request', () => {
  for (const [authority, host] of [
    ['Web.Example:8080', 'web.example'],
    ['web.example.', 'web.example'],
    ['[fd00::1]:80', 'fd00::1'],
    ['', ''],
  ] as const)
    it(`returns "${host}" for "${authority}"`, () => assert.equal(hostOf(authority), host))
})
