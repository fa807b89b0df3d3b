import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createRegistry } from '#lib/metrics.ts'

import { createInflight } from './inflight.ts'
import { requestInfoOf } from './request-info.ts'
import { createRequestMetrics, type Observed } from './request-metrics.ts'

function observed(method: string, target: string, more: Partial<Observed> = {}): Observed {
  const [path = '', query = ''] = target.split('?')
  const info = requestInfoOf(method, path, new URLSearchParams(query))
  return { info, method, contentType: '', isDryRun: false, ...more }
}

function setUp(): {
  readonly render: () => string
  readonly observe: ReturnType<typeof createRequestMetrics>
  readonly clock: ReturnType<typeof createVirtualClock>
} {
  const registry = createRegistry()
  const clock = createVirtualClock()
  const inflight = createInflight({ maxReading: 1, maxMutating: 1 })
  const observe = createRequestMetrics({ registry, clock, inflight, isServed: ({ resource }) => resource === 'pods' })
  return { render: () => registry.render(), observe, clock }
}

describe('request metrics', () => {
  it('count a request by what it was about and how it ended', async () => {
    const { render, observe, clock } = setUp()
    const request = observe(observed('POST', '/api/v1/namespaces/a/pods', { isDryRun: true }))
    await clock.advance(70)
    request.end(201, 1500)
    const labels =
      'component="apiserver",dry_run="All",group="",resource="pods",scope="namespace",subresource="",verb="POST",version="v1"'
    const text = render()
    assert.ok(text.includes(`apiserver_request_total{code="201",${labels}} 1\n`), text)
    assert.ok(text.includes(`apiserver_request_duration_seconds_bucket{${labels},le="0.05"} 0\n`), text)
    assert.ok(text.includes(`apiserver_request_duration_seconds_bucket{${labels},le="0.1"} 1\n`), text)
    assert.match(text, /apiserver_response_sizes_bucket\{[^}]*le="10000"\} 1\n/)
  })

  it('show watches while they last', () => {
    const { render, observe } = setUp()
    const watch = observe(observed('GET', '/api/v1/pods?watch=1'))
    assert.match(render(), /apiserver_longrunning_requests\{[^}]*scope="cluster"[^}]*verb="WATCH"[^}]*\} 1\n/)
    watch.end(200, undefined)
    assert.match(render(), /apiserver_longrunning_requests\{[^}]*verb="WATCH"[^}]*\} 0\n/)
  })

  for (const [method, target, contentType, verb] of [
    ['GET', '/api/v1/pods', '', 'LIST'],
    ['PATCH', '/api/v1/namespaces/a/pods/b', 'application/apply-patch+yaml', 'APPLY'],
    ['PATCH', '/api/v1/namespaces/a/pods/b', 'application/merge-patch+json', 'PATCH'],
    ['DELETE', '/api/v1/namespaces/a/pods', '', 'DELETECOLLECTION'],
    ['POST', '/api/v1/namespaces/a/pods/b/exec', '', 'CONNECT'],
    ['BREW', '/coffee', '', 'other'],
  ] as const) {
    it(`call ${method} ${target} ${contentType} ${verb}`, () => {
      const { render, observe } = setUp()
      observe(observed(method, target, { contentType })).end(200, undefined)
      assert.match(render(), new RegExp(`apiserver_request_total\\{[^}]*verb="${verb}"`))
    })
  }

  it('make no new series for what is not served', () => {
    const { render, observe } = setUp()
    for (let at = 0; at < 50; at++) observe(observed('GET', `/apis/g${at}/v1/things${at}`)).end(404, undefined)
    assert.equal(render().match(/^apiserver_request_total\{/gm)?.length, 1)
  })
})
