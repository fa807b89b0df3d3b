import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { FEATURE_GATES } from '#component/flags/gates.ts'
import { type Outcome, runProgram } from '#kits/cmd/run-program.ts'
import { assertUpstreamFlags } from '#kits/cmd/upstream-flags.ts'
import { SCHEDULER_REACH, WORKING } from '#scheduler/gates.ts'

import { SCHEDULER_FLAGS } from './flags.ts'
import { scheduler } from './scheduler.ts'

async function run(...args: string[]): Promise<string> {
  return (await runWith({}, ...args)).err
}

function runWith(files: Readonly<Record<string, string>>, ...args: string[]): Promise<Outcome> {
  const { signal } = new AbortController()
  const readFile = (path: string): Promise<string> =>
    Object.hasOwn(files, path)
      ? Promise.resolve(files[path] ?? '')
      : Promise.reject(Object.assign(new Error('gone'), { code: 'ENOENT' }))
  return runProgram((context) => scheduler.run(context, signal), { args, readFile })
}

describe('flags of kube-scheduler', () => {
  it("have upstream's groups, order, types and defaults", () => {
    assertUpstreamFlags(SCHEDULER_FLAGS, 'kube-scheduler')
  })

  const refusals: readonly [args: readonly string[], message: string][] = [
    [['--leader-elect-renew-deadline=15s'], 'leaseDuration must be greater than renewDeadline'],
    [['--kubeconfig=nowhere'], 'stat nowhere: no such file or directory'],
    [
      ['--leader-elect-resource-lock=endpoints'],
      '--leader-elect-resource-lock=endpoints is not supported: leader election uses a Lease',
    ],
    [
      ['--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true'],
      '--feature-gates=TopologyAwareWorkloadScheduling=true is not supported: PodGroups are placed pod by pod',
    ],
  ]
  for (const [args, message] of refusals) {
    it(`are refused with "${message}": ${args.join(' ')}`, async () => {
      assert.match(await run(...args), new RegExp(`Error: ${RegExp.escape(message)}\n$`))
    })
  }

  it('cause a warning about feature gates without effect, including those that AllAlpha enables', async () => {
    const output = await run('--feature-gates=AllAlpha=true,OpportunisticBatching=false', '--kubeconfig=nowhere')
    assert.match(output, /--feature-gates=OpportunisticBatching=false has no effect: equivalent pods always share/)
    assert.match(output, /--feature-gates=WorkloadAwarePreemption=true has no effect: victims are selected by pod/)
  })

  it('divide the feature gates into those that the scheduler reads and those without effect', () => {
    const rooms = ['scheduler', 'apiserver/diagnostics'].map((room) => join(import.meta.dirname, '../..', room))
    const files = rooms.flatMap((room) => globSync(join(room, '**/*.ts'))).filter((name) => !name.endsWith('.test.ts'))
    const text = files.map((name) => readFileSync(name, 'utf8')).join('\n')
    const stay = [...Object.keys(SCHEDULER_REACH.fixed), ...Object.keys(SCHEDULER_REACH.refused)]
    for (const gate of WORKING) assert.match(text, new RegExp(`'${gate}'`), gate)
    for (const gate of stay) assert.doesNotMatch(text, new RegExp(`isEnabled\\('${gate}'\\)`), gate)
    const all = [...WORKING, ...stay]
    assert.equal(new Set(all).size, all.length)
    for (const gate of all) assert.ok(FEATURE_GATES[gate] !== undefined && FEATURE_GATES[gate].locked !== true, gate)
  })
})

describe('configuration of kube-scheduler', () => {
  const head = 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n'

  const refusals: readonly [more: string, args: readonly string[], message: string][] = [
    ['foo: 1', [], 'strict decoding error: unknown field "foo"'],
    ['podInitialBackoffSeconds: -1', [], 'podInitialBackoffSeconds: Invalid value: -1: must be greater than 0'],
    [
      '',
      ['--leader-elect-lease-duration=1s', '--leader-elect-renew-deadline=500ms', '--leader-elect-retry-period=1s'],
      'renewDeadline must be greater than retryPeriod*JitterFactor',
    ],
    [
      'leaderElection: {leaseDuration: 1s, renewDeadline: 20s}',
      [],
      'leaderElection.leaseDuration: Invalid value: "20s": must be greater than `RenewDeadline`',
    ],
    [
      'profiles: [{plugins: {bind: {disabled: [{name: "*"}]}}}]',
      [],
      'initializing profiles: creating profile for scheduler name default-scheduler: at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
    ],
    [
      'profiles: [{plugins: {queueSort: {disabled: [{name: "*"}]}}}]',
      [],
      'initializing profiles: creating profile for scheduler name default-scheduler: only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
    ],
    [
      'profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio}}}]}]',
      [],
      'initializing profiles: creating profile for scheduler name default-scheduler: initializing plugin "NodeResourcesFit": scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio',
    ],
  ]
  for (const [more, args, message] of refusals) {
    it(`is refused if the file or the flags contain ${[more, ...args].join(' ')}`, async () => {
      const { err, code } = await runWith({ 'c.yaml': `${head}${more}` }, '--config=c.yaml', ...args)
      assert.match(err, new RegExp(`Error: ${RegExp.escape(message)}\n$`))
      assert.equal(code, 1)
    })
  }

  it('reports fields without effect', async () => {
    const more = 'clientConnection: {kubeconfig: nowhere, contentType: x}\nenableContentionProfiling: false'
    const { err } = await runWith({ 'c.yaml': `${head}${more}` }, '--config=c.yaml')
    assert.match(err, /enableContentionProfiling has no effect: there are no locks to profile/)
    assert.match(err, /clientConnection.contentType has no effect: requests are sent as JSON/)
    assert.doesNotMatch(err, /parallelism/)
  })

  it('reports a missing file', async () => {
    assert.match(await run('--config=nowhere'), /Error: open nowhere: no such file or directory\n$/)
  })
})
