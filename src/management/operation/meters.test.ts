import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import type { Route } from '../port/route.ts'
import { createServerMeters, lastsLong, loginResult } from './meters.ts'

describe('metrics of the management server', () => {
  const clock = createVirtualClock()
  const create = (): ReturnType<typeof createServerMeters> =>
    createServerMeters({
      clock,
      hub: () => ({ tunnels: 2, streams: 5, receivedBytes: 100, sentBytes: 200 }),
      objects: () => new Map([['Cluster', 3]]),
      replicas: () => ({ known: 2, connected: 1 }),
      leads: () => true,
      lostAuditLines: () => 0,
    })
  const exchange = (method: string, path: string): Exchange => ({ method, path }) as Exchange
  const route = (path: string): Route => ({ method: '*', path, access: 'person', serve: () => ({ status: 200 }) })

  it('count requests by route and code, and measure the duration of short ones', async () => {
    using meters = create()
    const done = meters.observe(exchange('GET', '/k8s/clusters/c-1/api'))
    assert.match(meters.registry.render(), /hyperkube_server_requests_inflight 1/)
    await clock.advance(20)
    done(route('/k8s/clusters/:cluster/*'), 200)
    meters.observe(exchange('GET', '/k8s/clusters/c-1/api/v1/pods?watch=1'))(route('/k8s/clusters/:cluster/*'), 200)
    meters.observe(exchange('PURGE', '/nothing'))(undefined, 404)
    const text = meters.registry.render()
    const counted = /requests_total\{code="200",method="GET",route="\/k8s\/clusters\/:cluster\/\*"\} 2/
    assert.match(text, counted)
    assert.match(text, /requests_total\{code="404",method="other",route=""\} 1/)
    assert.match(text, /duration_seconds_count\{method="GET",route="\/k8s\/clusters\/:cluster\/\*"\} 1/)
    assert.match(text, /duration_seconds_bucket\{method="GET",route="\/k8s\/clusters\/:cluster\/\*",le="0.025"\} 1/)
    assert.match(text, /hyperkube_server_requests_inflight 0/)
  })

  it('include tunnels, objects, replicas and the process', () => {
    using meters = create()
    const text = meters.registry.render()
    for (const line of [
      /hyperkube_server_tunnels 2/,
      /hyperkube_server_tunnel_bytes_total\{direction="sent"\} 200/,
      /hyperkube_server_objects\{kind="Cluster"\} 3/,
      /hyperkube_server_replicas\{state="alive"\} 3/,
      /hyperkube_server_leads 1/,
      /process_resident_memory_bytes \d/,
    ])
      assert.match(text, line)
  })
})

describe('loginResult() for the metric of log-ins', () => {
  const rows: readonly (readonly [string, string, number, string | undefined])[] = [
    ['POST', '/v3-public/login', 200, 'succeeded'],
    ['POST', '/v3-public/login', 401, 'failed'],
    ['POST', '/v3-public/login', 429, 'throttled'],
    ['GET', '/v3-public/oidc/:provider/callback', 302, 'succeeded'],
    ['GET', '/v3-public/oidc/:provider/login', 302, undefined],
    ['GET', '/v3-public/providers', 200, undefined],
    ['POST', '/v3/users', 201, undefined],
  ]
  for (const [method, path, status, result] of rows) {
    it(`counts ${method} ${path} with status ${status} as ${result ?? 'no log-in'}`, () => {
      assert.equal(loginResult({ method, path }, status), result)
    })
  }
})

describe('lastsLong() for a request path', () => {
  it('returns true for watches and followed logs', () => {
    const targets = ['/a?watch=1', '/a?x=1&watch=true', '/a?follow=true', '/a?watch=0', '/a?follow=', '/a']
    assert.deepEqual(targets.map(lastsLong), [true, true, true, false, false, false])
  })
})
