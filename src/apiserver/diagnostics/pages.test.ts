import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { requestInfoOf } from '#auth/request-info.ts'
import { createDebugPages } from '#component/pages/debug-pages.ts'
import { createHealth, type HealthCheck } from '#component/pages/health.ts'
import type { Answer, Call, WholeAnswer } from '#component/requests/call.ts'
import { createServerMeters } from '#model/metrics/families.ts'

type Page = (call: Call) => Promise<Answer> | Answer | undefined

interface RequestOptions {
  readonly method?: string
  readonly body?: string
}

async function ask(
  page: Page,
  target: string,
  { method = 'GET', body = '' }: RequestOptions = {},
): Promise<WholeAnswer & { readonly body: string }> {
  const [path = '', text = ''] = target.split('?')
  const query = new URLSearchParams(text)
  const call = {
    method,
    query,
    info: requestInfoOf(method, path, query),
    body: () => Promise.resolve(Buffer.from(body)),
  }
  const answer = await page(call as unknown as Call)
  assert.ok(answer !== undefined && 'body' in answer && typeof answer.body === 'string', `${target} is not answered`)
  return { ...answer, body: answer.body }
}

describe('health pages', () => {
  const all = ['healthz', 'livez', 'readyz'] as const
  const checks: readonly HealthCheck[] = [
    { name: 'ping', on: all, check: () => undefined },
    { name: 'etcd', on: ['readyz'], check: () => Promise.reject(new Error('disk full')) },
    { name: 'poststarthook/rbac/bootstrap-roles', on: all, check: () => undefined },
  ]
  const setUp = (): { readonly page: Page; readonly render: () => string } => {
    const meters = createServerMeters()
    return { page: createHealth(checks, meters), render: () => meters.registry.render() }
  }

  it('respond with "ok", or with a list of all checks if verbose is set', async () => {
    const { page } = setUp()
    assert.equal((await ask(page, '/healthz')).body, 'ok')
    assert.equal(
      (await ask(page, '/livez?verbose')).body,
      '[+]ping ok\n[+]poststarthook/rbac/bootstrap-roles ok\nlivez check passed\n',
    )
  })

  it('name failed checks without their reasons', async () => {
    const { status, body } = await ask(setUp().page, '/readyz')
    assert.equal(status, 500)
    assert.equal(
      body,
      '[+]ping ok\n[-]etcd failed: reason withheld\n[+]poststarthook/rbac/bootstrap-roles ok\nreadyz check failed\n',
    )
  })

  it('exclude checks on request and report unknown ones', async () => {
    const { body } = await ask(setUp().page, '/readyz?verbose&exclude=etcd&exclude=zoo&exclude=ark')
    assert.equal(
      body,
      '[+]ping ok\n[+]etcd excluded: ok\n[+]poststarthook/rbac/bootstrap-roles ok\nwarn: some health checks cannot be excluded: no matches for "ark","zoo"\nreadyz check passed\n',
    )
  })

  it('respond for a single check with its reason, also if its name contains slashes', async () => {
    const { page } = setUp()
    assert.equal((await ask(page, '/readyz/poststarthook/rbac/bootstrap-roles')).body, 'ok')
    const { status, body } = await ask(page, '/readyz/etcd')
    assert.deepEqual([status, body], [500, 'internal server error: disk full\n'])
    assert.equal(page({ info: requestInfoOf('GET', '/livez/etcd', undefined) } as unknown as Call), undefined)
  })

  it('count results of checks in metrics', async () => {
    const { page, render } = setUp()
    await ask(page, '/readyz')
    await ask(page, '/readyz')
    assert.match(render(), /^kubernetes_healthcheck\{name="etcd",type="readyz"\} 0$/m)
    assert.match(render(), /^kubernetes_healthcheck\{name="ping",type="readyz"\} 1$/m)
    assert.match(render(), /^kubernetes_healthchecks_total\{name="etcd",status="error",type="readyz"\} 2$/m)
  })
})

describe('debug pages', () => {
  it('set the log level', async () => {
    const levels: number[] = []
    const page = createDebugPages({ isProfiled: true, setVerbosity: (level) => void levels.push(level) })
    const put = (body: string): Promise<WholeAnswer> => ask(page, '/debug/flags/v', { method: 'PUT', body })
    assert.equal((await put('4')).body, 'successfully set klog.logging.verbosity to 4')
    assert.equal((await put('loud')).status, 400)
    assert.equal((await put('-1')).status, 400)
    assert.equal((await ask(page, '/debug/flags/v')).status, 406)
    assert.deepEqual(levels, [4])
  })

  it('respond with 404 for profiles, and do not exist without --profiling', async () => {
    assert.equal((await ask(createDebugPages({ isProfiled: true }), '/debug/pprof/heap')).status, 501)
    const off = createDebugPages({ isProfiled: false })
    assert.equal(off({ info: requestInfoOf('GET', '/debug/pprof/', undefined) } as unknown as Call), undefined)
  })
})
