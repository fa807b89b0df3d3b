import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import type { Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'

import { Directory } from './directory.ts'
import { lookUp, type Names } from './lookup.ts'
import type { RecordData, ResourceRecord } from './message.ts'
import { TYPE } from './wire.ts'

const TCP = { protocol: 'TCP' }

function serviceOf(name: string, spec: object): Service {
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name, namespace: 'shop' },
    spec,
    status: {},
  } as unknown as Service
}

function sliceOf(
  name: string,
  service: string,
  endpoints: readonly object[],
  ports: readonly object[] = [],
): EndpointSlice {
  const metadata = { name, namespace: 'shop', labels: { 'kubernetes.io/service-name': service } }
  return { metadata, addressType: 'IPv4', endpoints, ports } as unknown as EndpointSlice
}

function sample(): { readonly directory: Directory; readonly names: Names } {
  const directory = new Directory()
  for (const name of ['shop', 'kube-system']) directory.setNamespace({ metadata: { name } } as never)
  directory.setService({
    ...serviceOf('kube-dns', { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'], ports: [] }),
    metadata: { name: 'kube-dns', namespace: 'kube-system' },
  })
  directory.setService(
    serviceOf('web', {
      clusterIP: '10.96.0.20',
      clusterIPs: ['10.96.0.20', 'fd00::20'],
      ports: [
        { name: 'http', port: 80, ...TCP },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
    }),
  )
  directory.setService(
    serviceOf('db', { clusterIP: 'None', clusterIPs: ['None'], ports: [{ name: 'sql', port: 5432, ...TCP }] }),
  )
  directory.setService(serviceOf('empty', { clusterIP: 'None', clusterIPs: ['None'], ports: [] }))
  directory.setService(serviceOf('away', { type: 'ExternalName', externalName: 'Example.com.' }))
  directory.setService(serviceOf('long', { type: 'ExternalName', externalName: `${'a'.repeat(64)}.com` }))
  directory.setSlice(
    sliceOf(
      'db-1',
      'db',
      [
        { addresses: ['10.244.0.5'], hostname: 'Db-0', conditions: { ready: true } },
        { addresses: ['10.244.0.6'], conditions: {} },
        { addresses: ['10.244.0.7'], conditions: { ready: false } },
      ],
      [{ name: 'sql', port: 5433, ...TCP }],
    ),
  )
  directory.setSlice(
    sliceOf('web-1', 'web', [{ addresses: ['10.244.0.5'], hostname: 'w' }], [{ name: 'http', port: 8080, ...TCP }]),
  )
  return { directory, names: { directory, domain: 'cluster.local', ttl: 30, rotation: () => 0 } }
}

const dataText = (data: RecordData): string => {
  if ('address' in data) return data.address
  if ('target' in data) return data.target
  return 'host' in data ? `${data.weight} ${data.port} ${data.host}` : 'text' in data ? data.text : 'soa'
}

const lines = (records: readonly ResourceRecord[]): string[] => records.map(({ data }) => dataText(data))

function ask(names: Names, name: string, type: number = TYPE.A): unknown {
  const outcome = lookUp(names, { name, type })
  return outcome.is === 'records' ? lines(outcome.answers) : outcome.is
}

describe('DNS lookup of cluster names', () => {
  const { names } = sample()
  const rows: readonly (readonly [string, keyof typeof TYPE, unknown])[] = [
    ['web.shop.svc.cluster.local', 'A', ['10.96.0.20']],
    ['web.shop.svc.cluster.local', 'AAAA', ['fd00::20']],
    ['web.shop.svc.cluster.local', 'MX', 'no data'],
    ['_http._tcp.web.shop.svc.cluster.local', 'SRV', ['50 80 web.shop.svc.cluster.local']],
    ['_http._tcp.web.shop.svc.cluster.local', 'A', ['10.96.0.20']],
    ['_http._udp.web.shop.svc.cluster.local', 'SRV', 'no name'],
    ['w.web.shop.svc.cluster.local', 'A', ['10.244.0.5']],
    ['db.shop.svc.cluster.local', 'A', ['10.244.0.5', '10.244.0.6']],
    ['db.shop.svc.cluster.local', 'AAAA', 'no data'],
    ['db-0.db.shop.svc.cluster.local', 'A', ['10.244.0.5']],
    ['10-244-0-6.db.shop.svc.cluster.local', 'A', ['10.244.0.6']],
    ['10-244-0-7.db.shop.svc.cluster.local', 'A', 'no name'],
    [
      '_sql._tcp.db.shop.svc.cluster.local',
      'SRV',
      ['50 5433 db-0.db.shop.svc.cluster.local', '50 5433 10-244-0-6.db.shop.svc.cluster.local'],
    ],
    ['empty.shop.svc.cluster.local', 'A', 'no name'],
    ['away.shop.svc.cluster.local', 'CNAME', ['example.com']],
    ['away.shop.svc.cluster.local', 'A', 'alias'],
    ['away.shop.svc.cluster.local', 'SRV', 'no data'],
    ['x.away.shop.svc.cluster.local', 'A', 'no name'],
    ['long.shop.svc.cluster.local', 'A', 'no name'],
    ['1-2-3-4.shop.pod.cluster.local', 'A', ['1.2.3.4']],
    ['1-2-3-4.shop.pod.cluster.local', 'AAAA', 'no data'],
    ['fd00--1.shop.pod.cluster.local', 'AAAA', ['fd00::1']],
    ['1-2-3-400.shop.pod.cluster.local', 'A', 'no name'],
    ['1-2-3-4.nowhere.pod.cluster.local', 'A', 'no name'],
    ['a.1-2-3-4.shop.pod.cluster.local', 'A', 'no name'],
    ['shop.svc.cluster.local', 'A', 'no data'],
    ['nowhere.svc.cluster.local', 'A', 'no name'],
    ['svc.cluster.local', 'A', 'no data'],
    ['cluster.local', 'A', 'no data'],
    ['cluster.local', 'NS', ['kube-dns.kube-system.svc.cluster.local']],
    ['cluster.local', 'AXFR', 'refused'],
    ['ns.dns.cluster.local', 'A', ['10.96.0.10']],
    ['dns-version.cluster.local', 'TXT', ['1.1.0']],
    ['other.cluster.local', 'A', 'no name'],
    ['a.b.c.web.shop.svc.cluster.local', 'A', 'no name'],
    ['20.0.96.10.in-addr.arpa', 'PTR', ['web.shop.svc.cluster.local']],
    ['5.0.244.10.in-addr.arpa', 'PTR', ['db-0.db.shop.svc.cluster.local', 'w.web.shop.svc.cluster.local']],
    ['0.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa', 'PTR', ['web.shop.svc.cluster.local']],
    ['7.0.244.10.in-addr.arpa', 'PTR', 'elsewhere'],
    ['0.244.10.in-addr.arpa', 'PTR', 'elsewhere'],
    ['example.com', 'A', 'elsewhere'],
    ['notcluster.local', 'A', 'elsewhere'],
  ]
  for (const [name, type, expected] of rows)
    test(`answers query ${name} ${type} ${expected === 'elsewhere' ? 'by forwarding it' : `with ${JSON.stringify(expected)}`}`, () =>
      assert.deepEqual(ask(names, name, TYPE[type]), expected))
})

test('adds the addresses of SRV targets to the answer', () => {
  const outcome = lookUp(sample().names, { name: '_http._tcp.web.shop.svc.cluster.local', type: TYPE.SRV })
  assert.ok(outcome.is === 'records')
  assert.deepEqual(lines(outcome.additional), ['10.96.0.20', 'fd00::20'])
})

test('begins each answer with the next address in rotation', () => {
  const { directory, names } = sample()
  let turns = 0
  const turning = { ...names, directory, rotation: (many: number): number => turns++ % many }
  assert.deepEqual(ask(turning, 'db.shop.svc.cluster.local'), ['10.244.0.5', '10.244.0.6'])
  assert.deepEqual(ask(turning, 'db.shop.svc.cluster.local'), ['10.244.0.6', '10.244.0.5'])
})

describe('DNS directory of Services', () => {
  test('applies changes and deletions', () => {
    const { directory, names } = sample()
    directory.setSlice(sliceOf('db-2', 'db', [{ addresses: ['10.244.1.9'] }]))
    assert.deepEqual(ask(names, 'db.shop.svc.cluster.local'), ['10.244.0.5', '10.244.0.6', '10.244.1.9'])
    directory.removeSlice('db-1', 'shop')
    assert.deepEqual(ask(names, 'db.shop.svc.cluster.local'), ['10.244.1.9'])
    assert.deepEqual(ask(names, '5.0.244.10.in-addr.arpa', TYPE.PTR), ['w.web.shop.svc.cluster.local'])
    directory.setService(serviceOf('web', { clusterIP: '10.96.0.21', clusterIPs: ['10.96.0.21'], ports: [] }))
    assert.equal(ask(names, '20.0.96.10.in-addr.arpa', TYPE.PTR), 'elsewhere')
    assert.deepEqual(ask(names, 'web.shop.svc.cluster.local'), ['10.96.0.21'])
    directory.removeService('web', 'shop')
    assert.equal(ask(names, 'web.shop.svc.cluster.local'), 'no name')
    directory.removeNamespace('shop')
    assert.equal(ask(names, 'db.shop.svc.cluster.local'), 'no name')
  })

  test('assigns an address to its latest Service, regardless of the order of deletions', () => {
    const { directory, names } = sample()
    const spec = { clusterIP: '10.96.0.20', clusterIPs: ['10.96.0.20'], ports: [] }
    directory.setService(serviceOf('next', spec))
    directory.removeService('web', 'shop')
    assert.deepEqual(ask(names, '20.0.96.10.in-addr.arpa', TYPE.PTR), ['next.shop.svc.cluster.local'])
  })

  test('ignores updates that do not affect DNS', () => {
    const { directory } = sample()
    const before = directory.version
    directory.setNamespace({ metadata: { name: 'shop' } } as never)
    directory.setService({
      ...serviceOf('db', { clusterIP: 'None', clusterIPs: ['None'], ports: [{ name: 'sql', port: 5432, ...TCP }] }),
    })
    directory.setSlice(
      sliceOf('web-1', 'web', [{ addresses: ['10.244.0.5'], hostname: 'w' }], [{ name: 'http', port: 8080, ...TCP }]),
    )
    directory.removeSlice('never', 'shop')
    assert.equal(directory.version, before)
  })

  test('removes a slice that loses its Service or addresses', () => {
    const { directory, names } = sample()
    directory.setSlice({ ...sliceOf('db-1', 'db', []), metadata: { name: 'db-1', namespace: 'shop' } })
    assert.equal(ask(names, 'db.shop.svc.cluster.local'), 'no name')
    directory.setSlice({ ...sliceOf('db-1', 'db', [{ addresses: ['a.example.com'] }]), addressType: 'FQDN' })
    assert.equal(ask(names, 'db.shop.svc.cluster.local'), 'no name')
    assert.deepEqual([...directory.stored('slices')], [['web-1', 'shop']])
    assert.deepEqual([...directory.stored('services')].map(([name]) => name).includes('db'), true)
  })
})
