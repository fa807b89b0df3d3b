/**
 * Tests two kube-scheduler processes against a server over HTTPS: one leads, the other takes over after a kill, and no
 * pod is bound twice.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { type ComponentPrograms, componentPrograms, until } from '../component-programs.ts'

const PODS = '/api/v1/namespaces/default/pods'

describe('kube-scheduler', () => {
  let programs: ComponentPrograms

  before(async () => {
    programs = await componentPrograms('kube-scheduler', {
      'disable-admission-plugins': ['ServiceAccount', 'TaintNodesByCondition'],
    })
    const { plane } = programs
    const allocatable = { cpu: '4', memory: '32Gi', pods: '1000' }
    for (const name of ['n1', 'n2']) {
      const node = { metadata: { name }, status: { allocatable, capacity: allocatable } }
      const made = await plane.request('POST', '/api/v1/nodes', node)
      assert.equal(made.status, 201, made.text)
    }
  })

  after(() => programs[Symbol.asyncDispose]())

  async function makePods(prefix: string, count: number): Promise<void> {
    for (let at = 0; at < count; at++) {
      const pod = { metadata: { name: `${prefix}-${at}` }, spec: { containers: [{ name: 'c', image: 'i' }] } }
      const made = await programs.plane.request('POST', PODS, pod)
      assert.equal(made.status, 201, made.text)
    }
  }

  const bound = (prefix: string, count: number): Promise<Pod[]> =>
    until(`the pods ${prefix}`, async () => {
      const { items } = (await programs.get(PODS)) as { items: Pod[] }
      const own = items.filter(({ metadata }) => metadata.name?.startsWith(prefix) === true)
      return own.length === count && own.every(({ spec }) => (spec.nodeName ?? '') !== '') ? own : undefined
    })

  it('becomes leader and binds pods, and another instance takes over after a kill, with the permissions of its role', async () => {
    const { start, holder, page, plane } = programs
    const first = await start()
    const leader = await until('a leader', holder)
    const second = await start()
    await makePods('one', 5)
    await bound('one', 5)
    const status = async (port: number): Promise<string | undefined> =>
      /leader_election_master_status\{name="kube-scheduler"\} (\d)/.exec(
        (await page(port, '/metrics', plane.token)).text,
      )?.[1]
    assert.deepEqual([await status(first.port), await status(second.port)], ['1', '0'])
    const { text } = await page(first.port, '/metrics', plane.token)
    for (const line of [
      'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 5',
      'scheduler_pod_scheduling_attempts_count 5',
      'scheduler_pending_pods{queue="active"} 0',
      'scheduler_cache_size{type="nodes"} 2',
    ]) {
      assert.ok(text.includes(`\n${line}\n`), line)
    }
    await makePods('two', 5)
    first.child.kill('SIGKILL')
    await makePods('three', 5)
    await bound('two', 5)
    await bound('three', 5)
    assert.notEqual(await holder(), leader)
    second.child.kill('SIGTERM')
    const [code] = (await once(second.child, 'exit')) as [number]
    assert.equal(code, 0, second.log())
    assert.equal(await holder(), undefined, 'who ends gives the lease back')
    assert.doesNotMatch(second.log(), /forbidden/)
  })

  it('serves health pages to all users, and other pages to authorized users', async () => {
    const { start, page, plane } = programs
    const { port } = await start()
    await until('it to be ready', async () => ((await page(port, '/readyz')).status === 200 ? true : undefined))
    const lines = async (path: string): Promise<string> => (await page(port, `${path}?verbose`)).text
    assert.equal(
      await lines('/readyz'),
      '[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n',
    )
    assert.equal(await lines('/livez'), '[+]ping ok\nlivez check passed\n')
    assert.equal(await lines('/healthz'), '[+]leaderElection ok\nhealthz check passed\n')
    assert.equal((await page(port, '/metrics')).status, 403)
    const shown = JSON.parse((await page(port, '/configz', plane.token)).text) as {
      componentconfig: { leaderElection: { leaseDuration: string }; profiles: { schedulerName: string }[] }
    }
    assert.equal(shown.componentconfig.leaderElection.leaseDuration, '8s')
    assert.equal(shown.componentconfig.profiles[0]?.schedulerName, 'default-scheduler')
    assert.match((await page(port, '/flagz', plane.token)).text, /kube-scheduler flagz\n/)
    assert.match((await page(port, '/statusz', plane.token)).text, /kube-scheduler statusz\n/)
  })
})
