import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import type { RouteCall } from '../port/route.ts'
import { healthRoutes, type ServerCheck } from './health.ts'

const clock = createVirtualClock()

describe('health routes of the management server', () => {
  let problem: string | undefined
  const changes: (string | undefined)[] = []
  const checks: readonly ServerCheck[] = [
    { name: 'ping', on: ['livez', 'readyz', 'healthz'], check: () => undefined },
    {
      name: 'disk',
      on: ['readyz'],
      check() {
        if (problem !== undefined) throw new Error(problem)
      },
    },
  ]
  const routes = healthRoutes({ clock, checks, onChange: (_name, found) => void changes.push(found) })
  const get = async (path: string): Promise<string> => {
    const [name = '', query = ''] = path.split('?')
    const route = routes.find((one) => one.path === name)
    const reply = await route?.serve({ query: new URLSearchParams(query) } as RouteCall)
    return reply !== undefined && 'status' in reply ? `${reply.status} ${reply.body as string}` : ''
  }

  it('respond with the result of each check', async () => {
    assert.equal(await get('/readyz'), '200 ok')
    assert.equal(await get('/readyz?verbose'), '200 [+]ping ok\n[+]disk ok\nreadyz check passed\n')
    problem = 'only 3 MiB are free in /secret/place'
    assert.equal(await get('/readyz'), '500 [+]ping ok\n[-]disk failed: reason withheld\nreadyz check failed\n')
    assert.equal(await get('/livez'), '200 ok')
    assert.equal(await get('/readyz?exclude=disk'), '200 ok')
    assert.match(await get('/readyz?exclude=none'), /no matches for "none"/)
    problem = undefined
    assert.equal(await get('/readyz'), '200 ok')
    assert.deepEqual(changes, ['only 3 MiB are free in /secret/place', undefined])
  })

  it('report a check that does not finish in time as failed', async () => {
    const hanging: ServerCheck = { name: 'datastore', on: ['readyz'], check: () => new Promise(() => undefined) }
    const [, readyz] = healthRoutes({ clock, checks: [hanging], onChange: () => undefined })
    const reply = Promise.resolve(readyz?.serve({ query: new URLSearchParams('verbose') } as RouteCall))
    await clock.advance(5000)
    assert.deepEqual(await reply, {
      status: 500,
      body: '[-]datastore failed: reason withheld\nreadyz check failed\n',
    })
  })
})
