import { Ingresses } from '#apis/networking/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

const service = { service: { name: 's', port: { number: 80 } } }
const PATH = '/spec/rules/0/http/paths/0'

const path = (text: string, pathType = 'Prefix'): Changes => ({
  [`${PATH}/path`]: text,
  [`${PATH}/pathType`]: pathType,
})
const port = (wanted: object): Changes => ({ [`${PATH}/backend/service/port`]: wanted })
const balanced = (...ingress: readonly object[]): Changes => ({ '/status': { loadBalancer: { ingress } } })

export const ingress: KindCases = {
  kind: Ingresses,
  valid: {
    metadata: { name: 'web' },
    spec: {
      ingressClassName: 'nginx',
      defaultBackend: service,
      rules: [{ host: 'a.example', http: { paths: [{ path: '/', pathType: 'Prefix', backend: service }] } }],
      tls: [{ hosts: ['a.example'], secretName: 'tls' }],
    },
  },
  refused: [
    { why: 'an empty spec', set: { '/spec': {} } },
    { why: 'no spec', set: { '/spec': undefined } },
    { why: 'a host that is an address', set: { '/spec/rules/0/host': '1.2.3.4' } },
    { why: 'a host that is an IPv6 address', set: { '/spec/rules/0/host': '::1' } },
    { why: 'a host with an underscore', set: { '/spec/rules/0/host': 'a_b' } },
    { why: 'a host of two wildcards', set: { '/spec/rules/0/host': '*.*.a' } },
    { why: 'a host of a wildcard alone', set: { '/spec/rules/0/host': '*' } },
    { why: 'a rule without paths', set: { '/spec/rules/0/http/paths': [] } },
    { why: 'a path without a type', set: { [`${PATH}/pathType`]: undefined } },
    { why: 'a path of an unknown type', set: path('/', 'Regex') },
    { why: 'a relative path', set: path('a') },
    { why: 'a relative path of any meaning', set: path('a', 'ImplementationSpecific') },
    { why: 'an empty exact path', set: path('', 'Exact') },
    { why: 'a path with a double slash', set: path('/a//b') },
    { why: 'a path that climbs and stays', set: path('/a/../b/./..') },
    { why: 'a path with encoded slashes', set: path('/a%2fb%2F') },
    { why: 'a path that ends in a dot', set: path('/a/.') },
    { why: 'two backends', set: { [`${PATH}/backend/resource`]: { kind: 'K', name: 'n' } } },
    { why: 'no backend', set: { [`${PATH}/backend`]: {} } },
    { why: 'a service without a name', set: { [`${PATH}/backend/service/name`]: '' } },
    { why: 'a service with a bad name', set: { [`${PATH}/backend/service/name`]: 'A.b' } },
    { why: 'no port', set: port({}) },
    { why: 'two ports', set: port({ name: 'http', number: 80 }) },
    { why: 'a port too high', set: port({ number: 65_536 }) },
    { why: 'a negative port', set: port({ number: -1 }) },
    { why: 'a port with a bad name', set: port({ name: 'HTTP--x' }) },
    { why: 'a port with a long name', set: port({ name: 'abcdefghijklmnopq' }) },
    { why: 'an empty default backend', set: { '/spec/defaultBackend': {} } },
    { why: 'an empty object as backend', set: { '/spec/defaultBackend': { resource: { apiGroup: 'A_b' } } } },
    {
      why: 'an object as backend whose names are paths',
      set: { '/spec/defaultBackend': { resource: { apiGroup: 'a.b', kind: 'a/b', name: 'x%y' } } },
    },
    { why: 'a TLS host with capitals', set: { '/spec/tls/0/hosts': ['A_b'] } },
    { why: 'a TLS host of two wildcards', set: { '/spec/tls/0/hosts': ['*.x.*'] } },
    { why: 'a TLS secret with a bad name', set: { '/spec/tls/0/secretName': 'A_b' } },
    { why: 'a class with a bad name', set: { '/spec/ingressClassName': 'A_b' } },
    { why: 'an empty class', set: { '/spec/ingressClassName': '' } },
    { why: 'two classes', set: { '/metadata/annotations': { 'kubernetes.io/ingress.class': 'other' } } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Web' } },
    { why: 'everything is removed', on: 'update', set: { '/spec': {} } },
    { why: 'the path becomes relative', on: 'update', set: path('x') },
    { why: 'a short address', on: 'update status', set: balanced({ ip: '1.2.3' }) },
    { why: 'an address with leading zeros', on: 'update status', set: balanced({ ip: '010.0.0.1' }) },
    { why: 'bad host names', on: 'update status', set: balanced({ hostname: '1.2.3.4' }, { hostname: 'A_' }) },
    ...badMetadataUpdates,
  ],
}
