import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { requestInfoOf } from '#auth/request-info.ts'
import { createInflight } from '#component/requests/inflight.ts'
import type { Observed } from '#component/requests/request-meter.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import { createRequestMetrics } from './requests.ts'

function observed(method: string, target: string, contentType = ''): Observed {
  const [path = '', text = ''] = target.split('?')
  const query = new URLSearchParams(text)
  return { info: requestInfoOf(method, path, query), method, contentType, query }
}

function setUp(): {
  readonly render: () => string
  readonly meter: ReturnType<typeof createRequestMetrics>
  readonly clock: ReturnType<typeof createVirtualClock>
} {
  const meters = createServerMeters()
  const clock = createVirtualClock()
  const load = createInflight({ maxReading: 1, maxMutating: 1 })
  const meter = createRequestMetrics({ meters, clock, load, isServed: ({ resource }) => resource === 'pods' })
  return { render: () => meters.registry.render(), meter, clock }
}

describe('request metrics', () => {
  it('count requests by resource, verb and status code', async () => {
    const { render, meter, clock } = setUp()
    const request = meter(observed('GET', '/api/v1/namespaces/a/pods/b'))
    request.routed()
    await clock.advance(70)
    request.end(200, 1500)
    const labels =
      'component="apiserver",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"'
    const text = render()
    const withDryRun = labels.replace('group=', 'dry_run="",group=')
    assert.ok(text.includes(`apiserver_request_total{code="200",${withDryRun}} 1\n`), text)
    assert.ok(text.includes(`apiserver_request_duration_seconds_bucket{${withDryRun},le="0.05"} 0\n`), text)
    assert.ok(text.includes(`apiserver_request_duration_seconds_bucket{${withDryRun},le="0.1"} 1\n`), text)
    assert.ok(text.includes(`apiserver_request_sli_duration_seconds_bucket{${labels},le="0.1"} 1\n`), text)
    assert.ok(text.includes(`apiserver_response_sizes_bucket{${labels},le="10000"} 1\n`), text)
  })

  it('show open watches', () => {
    const { render, meter } = setUp()
    const watch = meter(observed('GET', '/api/v1/pods?watch=1'))
    watch.routed()
    assert.match(render(), /apiserver_longrunning_requests\{[^}]*scope="cluster"[^}]*verb="WATCH"[^}]*\} 1\n/)
    watch.end(200, undefined)
    assert.match(render(), /apiserver_longrunning_requests\{[^}]*verb="WATCH"[^}]*\} 0\n/)
  })

  for (const [method, target, contentType, verb, scope] of [
    ['GET', '/api/v1/pods', '', 'LIST', 'cluster'],
    ['HEAD', '/api/v1/namespaces/a/pods', '', 'LIST', 'namespace'],
    ['POST', '/api/v1/namespaces/a/pods', '', 'POST', 'resource'],
    ['PATCH', '/api/v1/namespaces/a/pods/b', 'application/apply-patch+yaml', 'APPLY', 'resource'],
    ['PATCH', '/api/v1/namespaces/a/pods/b', 'application/merge-patch+json', 'PATCH', 'resource'],
    ['DELETE', '/api/v1/namespaces/a/pods', '', 'DELETE', 'namespace'],
    ['POST', '/api/v1/namespaces/a/pods/b/exec', '', 'CONNECT', 'resource'],
    ['GET', '/readyz', '', 'GET', ''],
  ] as const) {
    it(`record ${method} ${target} ${contentType} as verb ${verb} with scope "${scope}"`, () => {
      const { render, meter } = setUp()
      const request = meter(observed(method, target, contentType))
      request.routed()
      request.end(200, undefined)
      assert.match(render(), new RegExp(`apiserver_request_total\\{[^}]*scope="${scope}"[^}]*verb="${verb}"`))
    })
  }

  it('label dry runs and exclude them from SLI durations', () => {
    const { render, meter } = setUp()
    for (const query of ['dryRun=All', 'dryRun=Most']) {
      const request = meter(observed('POST', `/api/v1/namespaces/a/pods?${query}`))
      request.routed()
      request.end(201, undefined)
    }
    assert.match(render(), /apiserver_request_total\{[^}]*dry_run="All"/)
    assert.match(render(), /apiserver_request_total\{[^}]*dry_run="invalid"/)
    assert.doesNotMatch(render(), /apiserver_request_sli_duration_seconds/)
  })

  it('create no series for requests that are unserved, rejected by a filter, or uncounted', () => {
    const { render, meter } = setUp()
    for (let at = 0; at < 50; at++) {
      const request = meter(observed('GET', `/apis/g${at}/v1/things${at}`))
      request.routed()
      request.end(404, undefined)
    }
    meter(observed('GET', '/api/v1/pods')).end(403, undefined)
    const version = meter(observed('GET', '/version'))
    version.routed()
    version.end(200, 10)
    assert.doesNotMatch(render(), /^apiserver_request_total/m)
  })

  it('count rejected requests as terminated by the server', () => {
    const { render, meter } = setUp()
    const request = meter(observed('GET', '/api/v1/pods'))
    request.terminated(429)
    request.end(429, undefined)
    assert.match(render(), /^apiserver_request_terminations_total\{code="429",.*verb="LIST".*\} 1$/m)
    assert.match(render(), /^apiserver_request_total\{code="429",.*verb="LIST".*\} 1$/m)
  })

  it('count authentication and authorization results without user names', () => {
    const { render, meter } = setUp()
    for (const user of ['jane@example.com', 'admin', 'system:node:a']) {
      const request = meter(observed('GET', '/api/v1/pods'))
      request.identified('success', user)
      request.decided('allowed')
    }
    meter(observed('GET', '/')).identified('error', '')
    const text = render()
    const users = [...text.matchAll(/^authenticated_user_requests\{username="(\w+)"\} 1$/gm)].map(([, name]) => name)
    assert.deepEqual(users, ['admin', 'email_id', 'other'])
    assert.match(text, /^authentication_attempts\{result="success"\} 3$/m)
    assert.match(text, /^authentication_duration_seconds_count\{result="error"\} 1$/m)
    assert.match(text, /^authorization_attempts_total\{result="allowed"\} 3$/m)
    assert.match(text, /^apiserver_request_filter_duration_seconds_count\{filter="authorization"\} 3$/m)
  })
})
