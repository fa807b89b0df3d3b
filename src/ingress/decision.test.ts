import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Ingress } from '#apis/networking/v1.ts'

import { decide, type Decision, hostOf, normalPath, type World } from './decision.ts'
import { routeTable } from './routes.ts'

const NGINX = 'nginx.ingress.kubernetes.io'

function aWorld(annotations: Readonly<Record<string, string>> = {}, rest: Partial<World> = {}): World {
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
    ...rest,
  }
}

const ask = (world: World, target = '/', authority = 'web.example', isSecure = false): Decision =>
  decide(world, { authority, target, isSecure, httpsPort: 443 })

describe('a request', () => {
  it('goes to the pods of its Service, path and query as they came', () => {
    const decision = ask(aWorld(), '/a%20b?x=1&y=%2F')
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

  it('for nobody is answered as the default backend does', () => {
    assert.deepEqual(ask(aWorld(), '/', 'other.example'), { is: 'answer', status: 404, text: 'default backend - 404' })
  })

  it('for nobody goes to the default backend where there is one', () => {
    const world = aWorld({}, { defaultBackend: { namespace: 'x', service: 'd', port: 80 } })
    assert.equal(ask(world, '/', 'other.example').is, 'pass')
  })

  it('for a Service without pods waits for better times', () => {
    const decision = ask(aWorld({}, { endpointsOf: () => [] }))
    assert.equal(decision.is === 'answer' && decision.status, 503)
  })

  it('is sent to HTTPS where there is a certificate, and not when it came that way', () => {
    const world = aWorld({}, { secureHosts: new Set(['web.example']) })
    assert.deepEqual(ask(world, '/a?b', 'web.example:80'), { is: 'redirect', to: 'https://web.example/a?b' })
    assert.equal(ask(world, '/a?b', 'web.example', true).is, 'pass')
    const off = aWorld({ [`${NGINX}/ssl-redirect`]: 'false' }, { secureHosts: new Set(['web.example']) })
    assert.equal(ask(off).is, 'pass')
    assert.equal(ask(aWorld({ [`${NGINX}/force-ssl-redirect`]: 'true' })).is, 'redirect')
  })

  it('is refused where an annotation would keep it out that nobody here knows', () => {
    const decision = ask(aWorld({ [`${NGINX}/whitelist-source-range`]: '10.0.0.0/8' }))
    assert.equal(decision.is === 'answer' && decision.status, 503)
  })
})

describe('normalPath()', () => {
  for (const [path, normal] of [
    ['/', '/'],
    ['//a//b', '/a/b'],
    ['/a/./b/', '/a/b/'],
    ['/a/../b', '/b'],
    ['/a/..', '/'],
    ['/%61dmin', '/admin'],
    ['/x/%2e%2e/admin', '/admin'],
    ['/../etc', undefined],
    ['/%zz', undefined],
    ['/a%00', undefined],
    ['*', undefined],
  ] as const)
    it(`${path} is ${normal ?? 'no path'}`, () => assert.equal(normalPath(path), normal))
})

describe('hostOf()', () => {
  for (const [authority, host] of [
    ['Web.Example:8080', 'web.example'],
    ['web.example.', 'web.example'],
    ['[fd00::1]:80', 'fd00::1'],
    ['', ''],
  ] as const)
    it(`"${authority}" is "${host}"`, () => assert.equal(hostOf(authority), host))
})
