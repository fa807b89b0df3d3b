/** The cluster and the queries with which `dns.ts` compares DNS servers: an object of each sort that has DNS names. */
import { TYPE } from '#dns/wire.ts'

export interface Asked {
  readonly name: string
  readonly type: number
  readonly via: 'udp' | 'tcp'
  readonly edns?: number
}

type Body = Readonly<Record<string, unknown>>
export type Made = readonly [path: string, body: Body]

const port = (name: string, number: number, protocol = 'TCP'): Body => ({ name, port: number, protocol })

function service(namespace: string, name: string, spec: Body): Made {
  const body = { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec }
  return [`/api/v1/namespaces/${namespace}/services`, body]
}

interface Endpoint {
  readonly addresses: readonly string[]
  readonly hostname?: string
  readonly ready?: boolean
}

interface Sliced {
  readonly name: string
  readonly ports?: readonly Body[]
  readonly type?: string
}

/** Of the Service `namespace/name`. */
export function slice(of: string, endpoints: readonly Endpoint[], sliced: Sliced): Made {
  const [namespace, service] = of.split('/')
  const body = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: sliced.name, namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: sliced.type ?? 'IPv4',
    endpoints: endpoints.map(({ addresses, hostname, ready }) => ({
      addresses,
      ...(hostname !== undefined && { hostname }),
      ...(ready !== undefined && { conditions: { ready } }),
    })),
    ports: sliced.ports ?? [port('http', 8080)],
  }
  return [`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, body]
}

const NAMESPACES = ['shop', 'bank', 'empty']
const HEADLESS = { clusterIP: 'None' }

export const CLUSTER: readonly Made[] = [
  ...NAMESPACES.map((name): Made => [
    '/api/v1/namespaces',
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
  ]),
  service('shop', 'web', {
    clusterIP: '10.0.0.50',
    ports: [port('http', 80), port('https', 443), port('dns', 53, 'UDP')],
  }),
  service('shop', 'one', { clusterIP: '10.0.0.51', ports: [{ port: 80 }] }),
  service('shop', 'db', { ...HEADLESS, ports: [port('sql', 5432)] }),
  service('shop', 'many', { ...HEADLESS, ports: [port('http', 80)] }),
  service('shop', 'six', { ...HEADLESS, ports: [port('http', 80)] }),
  service('shop', 'none', { ...HEADLESS, ports: [port('http', 80)] }),
  service('shop', 'portless', HEADLESS),
  service('shop', 'away', { type: 'ExternalName', externalName: 'www.example.com' }),
  service('shop', 'gone', { type: 'ExternalName', externalName: 'nowhere.example.com' }),
  service('shop', 'inside', { type: 'ExternalName', externalName: 'web.shop.svc.cluster.local' }),
  service('shop', 'twice', { type: 'ExternalName', externalName: 'inside.shop.svc.cluster.local' }),
  service('shop', 'lost', { type: 'ExternalName', externalName: 'no.shop.svc.cluster.local' }),
  service('bank', 'web', { clusterIP: '10.0.0.60', ports: [port('http', 80)] }),
  slice('shop/web', [{ addresses: ['10.244.0.1'] }, { addresses: ['10.244.0.2'], hostname: 'w-2' }], { name: 'web-1' }),
  slice(
    'shop/db',
    [
      { addresses: ['10.244.1.1'], hostname: 'db-0' },
      { addresses: ['10.244.1.2'], hostname: 'db-1', ready: false },
      { addresses: ['10.244.1.3'], ready: true },
    ],
    { name: 'db-1', ports: [port('sql', 5433), port('admin', 8080)] },
  ),
  slice('shop/db', [{ addresses: ['10.244.1.4'], hostname: 'db-4' }], { name: 'db-2', ports: [port('sql', 5434)] }),
  slice(
    'shop/many',
    Array.from({ length: 90 }, (_, nth) => ({ addresses: [`10.244.2.${nth + 1}`] })),
    { name: 'many-1' },
  ),
  slice('shop/six', [{ addresses: ['fd00::5'] }, { addresses: ['fd00:1::'] }], { name: 'six-1', type: 'IPv6' }),
  slice('shop/portless', [{ addresses: ['10.244.3.1'] }], { name: 'portless-1', ports: [] }),
]

const NAMES = [
  'web.shop.svc',
  'one.shop.svc',
  'db.shop.svc',
  'many.shop.svc',
  'six.shop.svc',
  'none.shop.svc',
  'portless.shop.svc',
  'away.shop.svc',
  'gone.shop.svc',
  'inside.shop.svc',
  'twice.shop.svc',
  'lost.shop.svc',
  'web.bank.svc',
  'web.empty.svc',
  'web.nowhere.svc',
  '_http._tcp.web.shop.svc',
  '_HTTP._TCP.web.shop.svc',
  '_dns._udp.web.shop.svc',
  '_dns._tcp.web.shop.svc',
  '_sql._tcp.db.shop.svc',
  '_admin._tcp.db.shop.svc',
  '_http._tcp.many.shop.svc',
  '_http._tcp.six.shop.svc',
  '_http._tcp.none.shop.svc',
  'http.tcp.web.shop.svc',
  '_tcp.web.shop.svc',
  'db-0.db.shop.svc',
  'db-1.db.shop.svc',
  'DB-4.db.shop.svc',
  '10-244-1-3.db.shop.svc',
  '10-244-0-1.web.shop.svc',
  'w-2.web.shop.svc',
  'fd00--5.six.shop.svc',
  'fd00-1--0.six.shop.svc',
  'x.db.shop.svc',
  'a.b.c.db.shop.svc',
  'x.away.shop.svc',
  '_http._tcp.away.shop.svc',
  '_http._tcp.portless.shop.svc',
  'kubernetes.default.svc',
  '_https._tcp.kubernetes.default.svc',
  '1-2-3-4.shop.pod',
  '1-2-3-4.nowhere.pod',
  'fd00--9.shop.pod',
  '1-2-3-400.shop.pod',
  'x.shop.pod',
  'shop.pod',
  'shop.svc',
  'nowhere.svc',
  'nowhere.pod',
  'svc',
  'pod',
  '',
  'other',
  'a.other',
  'dns-version',
  'web.shop',
  'web',
  'ns.dns',
  'dns',
].map((name) => (name === '' ? 'cluster.local' : `${name}.cluster.local`))

const REVERSE = [
  '50.0.0.10',
  '60.0.0.10',
  '1.0.0.10',
  '1.0.244.10',
  '2.0.244.10',
  '2.1.244.10',
  '3.1.244.10',
  '9.9.9.9',
  '0.0.10',
  'x.0.0.10',
].map((name) => `${name}.in-addr.arpa`)
const REVERSE_SIX = [
  '5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa',
  '6.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa',
]
const WORLD = ['www.example.com', 'nowhere.example.com', 'alias.example.com', 'big.example.com', 'Www.Example.COM']
const TYPES = [TYPE.A, TYPE.AAAA, TYPE.SRV, TYPE.CNAME, TYPE.TXT, TYPE.MX, TYPE.PTR, TYPE.NS, TYPE.SOA, 255, 65]

/** Capitals here and there, as some resolvers have them against forgery. */
const mixed = (name: string): string =>
  name.replaceAll(/[a-z]/g, (letter, at: number) => (at % 3 === 0 ? letter.toUpperCase() : letter))

export const QUESTIONS: readonly Asked[] = [
  ...NAMES.flatMap((name) => TYPES.map((type): Asked => ({ name, type, via: 'udp' }))),
  ...NAMES.flatMap((name) =>
    [TYPE.A, TYPE.SRV].map((type): Asked => ({ name: mixed(name), type, via: 'udp', edns: 1232 })),
  ),
  ...NAMES.flatMap((name) => [TYPE.A, TYPE.SRV].map((type): Asked => ({ name, type, via: 'tcp' }))),
  ...[...REVERSE, ...REVERSE_SIX].flatMap((name) =>
    [TYPE.PTR, TYPE.A].map((type): Asked => ({ name, type, via: 'udp' })),
  ),
  ...WORLD.flatMap((name) =>
    [TYPE.A, TYPE.AAAA, TYPE.TXT].flatMap((type): Asked[] => [
      { name, type, via: 'udp', edns: 1232 },
      { name, type, via: 'tcp' },
    ]),
  ),
]
