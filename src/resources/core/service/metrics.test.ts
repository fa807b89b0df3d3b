import assert from 'node:assert/strict'
import { it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import { parseCidr } from '#lib/net/cidr.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import { AddressError, type IpPool } from './ip-pool.ts'
import { createServiceMeter, measureLedger, registerAddresses } from './metrics.ts'
import { createMemoryLedger } from './node-ports.ts'

const RANGES = () => [{ cidr: parseCidr('10.0.0.0/24')!, ready: true }]
const TERMS = { dryRun: false, signal: new AbortController().signal }
const SERVICE = { metadata: { name: 's' }, spec: {} } as never

function linesOf(text: string, prefix: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(prefix) && !line.includes('_bucket'))
}

it('metrics of cluster IP allocation count allocated and failed addresses by range, without dry runs', async () => {
  const metrics = createRegistry()
  const meters = createServerMeters(metrics)
  const pool: IpPool = {
    take: async (text) => text,
    takeAny: () => Promise.reject(new AddressError('full', 'range is full')),
    giveBack: async () => undefined,
  }
  const measured = createServiceMeter(meters, createVirtualClock()).pool(pool, RANGES)
  registerAddresses(meters, RANGES, () => ['10.0.0.1', '10.0.0.9', '10.9.0.1'])
  await measured.take('10.0.0.9', SERVICE, TERMS)
  await measured.take('10.0.0.9', SERVICE, { ...TERMS, dryRun: true })
  await assert.rejects(measured.takeAny('IPv4', SERVICE, TERMS))
  const name = 'kube_apiserver_clusterip_allocator_'
  assert.deepEqual(linesOf(metrics.render(), name), [
    `${name}allocated_ips{cidr="10.0.0.0/24"} 2`,
    `${name}allocation_duration_seconds_sum{cidr="10.0.0.0/24"} 0`,
    `${name}allocation_duration_seconds_count{cidr="10.0.0.0/24"} 1`,
    `${name}allocation_errors_total{cidr="10.0.0.0/24",scope="dynamic"} 1`,
    `${name}allocation_total{cidr="10.0.0.0/24",scope="static"} 1`,
    `${name}available_ips{cidr="10.0.0.0/24"} 252`,
  ])
})

it('metrics of node port allocation count allocated ports, and show the number of free ones', async () => {
  const metrics = createRegistry()
  const meters = createServerMeters(metrics)
  const ledger = measureLedger(createMemoryLedger(), { first: 30_000, last: 30_009 }, meters)
  await ledger.change((taken) => taken.add(30_001).add(30_002))
  const wanted = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_001 }] } as never
  const meter = createServiceMeter(meters, createVirtualClock())
  meter.ports({ taken: [30_001, 30_002], released: [] }, wanted)
  meter.ports({ taken: [], released: [], refusal: { failure: 'range is full', internal: true } }, wanted)
  const name = 'kube_apiserver_nodeport_allocator_'
  assert.deepEqual(linesOf(metrics.render(), name), [
    `${name}allocated_ports 2`,
    `${name}allocation_errors_total{scope="dynamic"} 1`,
    `${name}allocation_total{scope="dynamic"} 1`,
    `${name}allocation_total{scope="static"} 1`,
    `${name}available_ports 8`,
  ])
})
