import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Ingress } from '#apis/networking/v1.ts'

import { rewrittenTarget } from './request-paths.ts'
import { type Route, routeFor, routeTable } from './routes.ts'

interface IngressFields {
  readonly name: string
  readonly rules?: Readonly<Record<string, readonly (readonly [type: string, path: string, service: string])[]>>
  readonly fallback?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly age?: number
}

function anIngress({ name, rules = {}, fallback, annotations = {}, age = 0 }: IngressFields): Ingress {
  const backend = (service: string): object => ({ service: { name: service, port: { number: 80 } } })
  return {
    metadata: { name, namespace: 'shop', annotations, creationTimestamp: new Date(1e12 - age * 1000).toISOString() },
    spec: {
      ...(fallback !== undefined && { defaultBackend: backend(fallback) }),
      rules: Object.entries(rules).map(([host, paths]) => ({
        ...(host !== '' && { host }),
        http: { paths: paths.map(([pathType, path, service]) => ({ path, pathType, backend: backend(service) })) },
      })),
    },
    status: { loadBalancer: {} },
  }
}

const serviceFor = (ingresses: readonly Ingress[], host: string, path: string): string | undefined =>
  routeFor(routeTable(ingresses, {}), host, path)?.backend?.service

describe('path rules of an Ingress', () => {
  const table = [
    anIngress({
      name: 'shop',
      rules: {
        'shop.example': [
          ['Prefix', '/', 'root'],
          ['Prefix', '/api', 'api'],
          ['Prefix', '/api/v2/', 'v2'],
          ['Exact', '/api', 'exact'],
          ['ImplementationSpecific', '/img', 'img'],
        ],
      },
    }),
  ]
  const CASES = [
    ['/', 'root'],
    ['/other', 'root'],
    ['/api', 'exact'],
    ['/api/', 'api'],
    ['/api/x', 'api'],
    ['/apix', 'root'],
    ['/api/v2', 'v2'],
    ['/api/v2/x', 'v2'],
    ['/api/v2x', 'api'],
    ['/img', 'img'],
    ['/images', 'root'],
    ['/imgs', 'img'],
  ] as const
  for (const [path, service] of CASES)
    it(`route ${path} to Service ${service}`, () => assert.equal(serviceFor(table, 'shop.example', path), service))
})

describe('host rules of several Ingresses', () => {
  const table = [
    anIngress({
      name: 'hosts',
      rules: {
        'one.example': [['Prefix', '/a', 'one']],
        '*.example': [['Prefix', '/', 'any']],
        '': [['Prefix', '/', 'rest']],
      },
    }),
  ]
  const CASES = [
    ['one.example', '/a', 'one'],
    ['ONE.example', '/a', 'one'],
    // A named host has only its own rules.
    ['one.example', '/b', undefined],
    ['two.example', '/b', 'any'],
    // A wildcard matches one label.
    ['a.two.example', '/', 'rest'],
    ['example', '/', 'rest'],
    ['10.0.0.1', '/', 'rest'],
  ] as const
  for (const [host, path, service] of CASES)
    it(`route ${host}${path} to ${service ?? 'no Service'}`, () => assert.equal(serviceFor(table, host, path), service))
})

describe('several Ingresses for one host', () => {
  it('use the path of the older Ingress if both have the same path', () => {
    const young = anIngress({ name: 'a', rules: { 'x.example': [['Prefix', '/', 'young']] } })
    const old = anIngress({ name: 'b', age: 60, rules: { 'x.example': [['Prefix', '/', 'old']] } })
    assert.equal(serviceFor([young, old], 'x.example', '/'), 'old')
  })

  it('have the same routes in any order of events', () => {
    const rule = (name: string): Ingress => anIngress({ name, rules: { 'x.example': [['Prefix', '/', name]] } })
    const [a, b, c] = [rule('a'), rule('b'), rule('c')]
    for (const order of [
      [a, b, c],
      [c, b, a],
      [b, c, a],
    ])
      assert.equal(serviceFor(order, 'x.example', '/'), 'a')
  })

  it('combine their paths', () => {
    const one = anIngress({ name: 'a', rules: { 'x.example': [['Prefix', '/one', 'one']] } })
    const two = anIngress({ name: 'b', rules: { 'x.example': [['Prefix', '/two', 'two']] } })
    assert.equal(serviceFor([one, two], 'x.example', '/two/x'), 'two')
  })
})

describe('default backend of an Ingress', () => {
  it('serves requests for the hosts of the Ingress that match no path', () => {
    const own = anIngress({ name: 'a', fallback: 'rest', rules: { 'x.example': [['Exact', '/a', 'a']] } })
    assert.equal(serviceFor([own], 'x.example', '/b'), 'rest')
    assert.equal(serviceFor([own], 'y.example', '/b'), undefined)
  })

  it('serves all hosts if the Ingress has no rules', () => {
    assert.equal(serviceFor([anIngress({ name: 'a', fallback: 'all' })], 'whoever', '/x'), 'all')
  })
})

describe('regular expressions in paths of an Ingress', () => {
  const annotations = { 'nginx.ingress.kubernetes.io/rewrite-target': '/$2' }
  const table = [
    anIngress({
      name: 'a',
      annotations,
      rules: { 'x.example': [['ImplementationSpecific', '/app(/|$)(.*)', 'app']] },
    }),
  ]
  const found = (path: string): Route | undefined => routeFor(routeTable(table, {}), 'x.example', path)

  it('rewrite a path with their capture groups', () => {
    for (const [requested, wanted] of [
      ['/app/one/two', '/one/two'],
      ['/APP/one', '/one'],
      ['/app', '/'],
    ] as const) {
      const route = found(requested)
      assert.ok(route)
      assert.equal(rewrittenTarget(route.options.rewriteTarget ?? '', route.groups, ''), wanted)
    }
    assert.equal(found('/apple'), undefined)
  })

  it('are reported and skipped if they are invalid', () => {
    const wrong = anIngress({
      name: 'b',
      annotations,
      rules: {
        'x.example': [
          ['ImplementationSpecific', '/(', 'wrong'],
          ['ImplementationSpecific', '/b', 'right'],
        ],
      },
    })
    const problems: string[] = []
    const routes = routeTable([wrong], {}, (_, reason) => problems.push(reason))
    assert.equal(routeFor(routes, 'x.example', '/b')?.backend?.service, 'right')
    assert.match(problems.join(), /^Path "\/\(" is no regular expression/)
  })
})
