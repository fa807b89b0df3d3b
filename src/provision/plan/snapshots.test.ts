import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { applyPlan } from '../apply/apply.ts'
import { observeCluster } from '../apply/observe.ts'
import { sha256 } from '../service-digest.ts'
import { desiredCluster, type HostDraft, SimulatedSite } from '../simulated-site.fixture.ts'
import { planCluster } from './plan.ts'
import { planRestore, planSave, planStrays, snapshotFiles } from './snapshots.ts'
import { type Plan, stepsOf } from './step.ts'

const FOUR: HostDraft[] = [
  ...['1', '2', '3'].map((name): HostDraft => ({ name, roles: ['etcd', 'controlplane'] })),
  { name: '4', roles: ['worker'] },
]
const OPTIONS = { checksPorts: false, workersOnly: false, keepsPods: true }
const FOLDER = '/opt/rke/etcd-snapshots'
const SNAPSHOT = 'all that etcd held'

const desired = desiredCluster(FOUR)
const { database } = snapshotFiles(FOLDER, 'one')
const restoring = {
  name: 'one',
  folder: FOLDER,
  from: '2',
  files: [{ path: database, sha256: sha256(SNAPSHOT), mode: 0o600 }],
  tool: { path: '/usr/bin/etcdutl' },
}

function carryOut(site: SimulatedSite, plan: Plan): Promise<unknown> {
  return applyPlan(plan, site.site(), () => undefined, new AbortController().signal)
}

async function up(site: SimulatedSite): Promise<void> {
  await carryOut(site, planCluster(desired, await observeCluster(desired, site.site()), OPTIONS))
}

async function built(): Promise<SimulatedSite> {
  const site = new SimulatedSite(FOUR)
  await up(site)
  site.machines.get('2')?.files.set(database, { content: SNAPSHOT, mode: 0o600 })
  return site
}

describe('snapshots of a built cluster', () => {
  it('are saved on every etcd machine, and one success suffices', () => {
    const plan = planSave(desired, 'one', { command: ({ name }) => [`take-${name}`], state: 'state' })
    assert.deepEqual(
      plan.waves.map(({ tracks, tolerates }) => [tracks.length, tolerates]),
      [[3, 2]],
    )
  })

  it('are restored on all members from one copy, after all clients of etcd have stopped', async () => {
    const steps = stepsOf(planRestore(desired, restoring)).map(({ host, describe: text }) => `${host} ${text}`)
    const first = (text: string): number => steps.findIndex((each) => each.endsWith(text))
    const last = (text: string): number => steps.findLastIndex((each) => each.endsWith(text))
    assert.ok(last('copy /opt/rke/etcd-snapshots/one.snapshot') < first('stop kube-apiserver'))
    assert.ok(last('stop kube-apiserver') < first('stop etcd'))
    assert.ok(last('stop etcd') < first('restore one'))
    assert.ok(!steps.some((text) => text.endsWith('stop api-proxy')))
    const site = await built()
    await carryOut(site, planRestore(desired, restoring))
    for (const name of ['1', '2', '3']) {
      assert.equal(site.machines.get(name)?.files.get(database)?.content, SNAPSHOT)
      assert.equal(site.machines.get(name)?.services.get('etcd'), undefined)
    }
    await up(site)
    assert.equal(site.machines.get('1')?.services.get('kube-apiserver')?.isRunning, true)
  })

  it('lead to the same state if an interrupted restore is repeated', async () => {
    const whole = await built()
    whole.killAt(Number.POSITIVE_INFINITY, 'before')
    await carryOut(whole, planRestore(desired, restoring))
    const calls = whole.calls.length
    await up(whole)
    for (let call = 1; call <= calls; call++)
      for (const moment of ['before', 'after'] as const) {
        const site = await built()
        site.killAt(call, moment)
        await carryOut(site, planRestore(desired, restoring)).catch(() => undefined)
        site.killAt(Number.POSITIVE_INFINITY, 'before')
        await carryOut(site, planRestore(desired, restoring))
        await up(site)
        assert.deepEqual(site.snapshot(), whole.snapshot(), `ended ${moment} call ${call}`)
      }
  })

  it('may contain nodes whose machines no longer exist', () => {
    assert.deepEqual(
      stepsOf(planStrays(['8'])).map(({ action }) => action),
      [{ type: 'delete-node', node: '8' }],
    )
    assert.deepEqual(planStrays([]).waves, [])
  })
})
