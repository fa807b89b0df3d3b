import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../../rules.fixture.ts'
import { job } from './resource.ts'

const { create, update, read, cells } = tryRules(job)

const body = {
  metadata: { name: 'pi', namespace: 'ns', generation: 2 },
  spec: {
    template: {
      metadata: { labels: { app: 'pi' } },
      spec: { containers: [{ name: 'c', image: 'i:1' }], restartPolicy: 'Never' },
    },
  },
}

test('a Job has one completion and six retries by default', () => {
  const { spec } = read(body)
  const { template: _, ...rest } = spec
  assert.deepEqual(rest, {
    parallelism: 1,
    completions: 1,
    backoffLimit: 6,
    manualSelector: false,
    completionMode: 'NonIndexed',
    suspend: false,
    podReplacementPolicy: 'TerminatingOrFailed',
  })
  const perIndex = read(changed(body, 'spec.backoffLimitPerIndex', 1)).spec
  assert.equal(perIndex.backoffLimit, 2 ** 31 - 1)
  assert.equal(read(changed(body, 'spec.parallelism', 3)).spec.completions, undefined)
  assert.equal(read(changed(body, 'spec.podFailurePolicy', { rules: [] })).spec.podReplacementPolicy, 'Failed')
})

test('a Job selects its pods by its uid and copies their labels', async () => {
  const { object, errors } = await create(body)
  assert.deepEqual(errors, [])
  const uid = object.metadata.uid ?? ''
  assert.deepEqual(object.spec.selector, { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } })
  const labels = {
    app: 'pi',
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': 'pi',
    'controller-uid': uid,
    'job-name': 'pi',
  }
  assert.deepEqual(object.spec.template.metadata.labels, labels)
  assert.deepEqual(object.metadata.labels, labels)
  const same = (await create(changed(body, 'metadata.labels', { app: 'pi' }))).object.metadata.labels
  assert.deepEqual(same, { app: 'pi' }, 'labels that the client gave do not grow')
  const own = (await create(changed(body, 'metadata.labels', { x: 'y' }))).object.metadata.labels
  assert.deepEqual(own, { x: 'y' })
})

test('a Job rejects labels that contradict the selector', async () => {
  const { errors } = await create(changed(body, 'spec.template.metadata.labels', { 'job-name': 'other' }))
  assert.equal(errors.length, 1)
  assert.match(errors[0] ?? '', /^spec\.template\.metadata\.labels\[job-name\]: Invalid value: \{.*\}: must be 'pi'$/)
  const manual = { ...body, spec: { ...body.spec, manualSelector: true, selector: { matchLabels: { app: 'pi' } } } }
  assert.deepEqual((await create(manual)).errors, [])
  assert.deepEqual((await create(changed(manual, 'spec.selector', undefined))).errors.slice(0, 1), [
    'spec.selector: Required value',
  ])
})

test('a Job rejects invalid specs', async () => {
  const indexed = (rest: object): object => ({ ...body.spec, completionMode: 'Indexed', completions: 3, ...rest })
  const rules = 'spec.podFailurePolicy.rules[0]'
  const failing = (rule: object): object => ({ ...body.spec, podFailurePolicy: { rules: [rule] } })
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.parallelism', -1, ['spec.parallelism: Invalid value: -1: must be greater than or equal to 0']],
    [
      'spec.completionMode',
      'Odd',
      ['spec.completionMode: Unsupported value: "Odd": supported values: "NonIndexed", "Indexed"'],
    ],
    [
      'spec.template.spec.restartPolicy',
      undefined,
      ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ],
    [
      'spec.managedBy',
      'me',
      ['spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")'],
    ],
    ['spec.backoffLimitPerIndex', 1, ['spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode']],
    [
      'spec',
      indexed({ completions: null, parallelism: 1 }),
      ['spec.completions: Required value: when completion mode is Indexed'],
    ],
    [
      'spec',
      indexed({ maxFailedIndexes: 4 }),
      [
        'spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified',
        'spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions',
      ],
    ],
    [
      'spec',
      failing({ action: 'Ignore', onExitCodes: { operator: 'In', values: [3, 0], containerName: 'x' } }),
      [
        `${rules}.onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template`,
        `${rules}.onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator`,
        `${rules}.onExitCodes.values: Invalid value: [3,0]: must be ordered`,
      ],
    ],
    [
      'spec',
      failing({ action: '' }),
      [
        `${rules}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`,
        `${rules}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`,
      ],
    ],
    [
      'spec',
      indexed({ successPolicy: { rules: [{ succeededIndexes: '0-1', succeededCount: 3 }, {}] } }),
      [
        'spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)',
        'spec.successPolicy.rules[1]: Required value: at least one of succeededCount or succeededIndexes must be specified',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, `${path} ${JSON.stringify(value)}`)
  }
})

test('a Job with completionMode Indexed requires a name that is a valid host name', async () => {
  const spec = { ...body.spec, completionMode: 'Indexed', completions: 3 }
  assert.deepEqual((await create({ ...body, metadata: { name: 'a.b', namespace: 'ns' }, spec })).errors, [
    'metadata.name: Invalid value: "a.b": will not able to create pod with invalid DNS label: a.b-2',
  ])
})

/** The stored form. */
const stored = async (spec: object, status: object = {}): Promise<object> => ({
  ...(await create({ ...body, spec: { ...body.spec, ...spec } })).object,
  status,
})

test('a Job rejects template changes while the Job runs', async () => {
  const old = await stored({})
  const { errors } = await update(changed(old, 'spec.template.spec.nodeSelector', { a: 'b' }), old)
  assert.equal(errors.length, 1)
  assert.match(errors[0] ?? '', /^spec\.template: Invalid value: \{.*\}: field is immutable$/)
  assert.deepEqual((await update(changed(old, 'spec.parallelism', 2), old)).errors, [])
  assert.deepEqual((await update(changed(old, 'spec.completions', 2), old)).errors, [
    'spec.completions: Invalid value: 2: field is immutable',
  ])
})

test('a Job allows changes of scheduling and resources while it is suspended and has not started', async () => {
  const old = await stored({ suspend: true })
  const moved = changed(old, 'spec.template.spec.nodeSelector', { a: 'b' })
  const resized = changed(old, 'spec.template.spec.containers.0.resources', { requests: { cpu: '1' } })
  const otherImage = changed(old, 'spec.template.spec.containers.0.image', 'i:2')
  assert.deepEqual((await update(moved, old)).errors, [])
  assert.deepEqual((await update(resized, old)).errors, [])
  assert.match((await update(otherImage, old)).errors[0] ?? '', /^spec\.template\.spec: Invalid value: .*immutable$/)
  const started = changed(old, 'status', { startTime: '2026-01-01T00:00:00Z' })
  assert.match((await update(moved, started)).errors[0] ?? '', /^spec\.template: Invalid value: .*immutable$/)
  const off = ['MutablePodResourcesForSuspendedJobs', 'MutableSchedulingDirectivesForSuspendedJobs']
  const before = tryRules(job, { off })
  assert.deepEqual((await before.update(moved, old)).errors, [])
  assert.match((await before.update(resized, old)).errors[0] ?? '', /^spec\.template: Invalid value: .*immutable$/)
})

test('a Job with completionMode Indexed allows a change of completions only together with parallelism', async () => {
  const old = await stored({ completionMode: 'Indexed', completions: 2, parallelism: 2 })
  const grown = changed(changed(old, 'spec.completions', 3), 'spec.parallelism', 3)
  assert.deepEqual((await update(grown, old)).errors, [])
  assert.deepEqual((await update(changed(old, 'spec.completions', 3), old)).errors, [
    'spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism',
  ])
})

test('a Job that is deleted orphans its pods unless the client sets a propagation policy', () => {
  const deletion = (options: object): string[] | undefined => {
    const object = read(body)
    job.deletion?.(object, options, undefined as never)
    return object.metadata.finalizers
  }
  assert.deepEqual(deletion({}), ['orphan'])
  assert.equal(deletion({ propagationPolicy: 'Background' }), undefined)
})

test('a Job prints its progress', () => {
  const at = Date.parse('2026-01-01T00:10:00Z')
  const started = { startTime: '2026-01-01T00:00:00Z', succeeded: 1 }
  assert.deepEqual(cells({ ...body, status: started }, at), [
    'pi',
    'Running',
    '1/1',
    '10m',
    '<unknown>',
    'c',
    'i:1',
    '<none>',
  ])
  const done = {
    ...started,
    completionTime: '2026-01-01T00:02:03Z',
    conditions: [{ type: 'Complete', status: 'True' }],
  }
  assert.deepEqual(cells({ ...body, status: done }, at).slice(1, 4), ['Complete', '1/1', '2m3s'])
  assert.deepEqual(cells(changed(body, 'spec.parallelism', 3), at).slice(1, 4), ['Running', '0/1 of 3', ''])
  assert.equal(job.unknownField?.('x'), 'field label "x" not supported for Job')
})
