/** Tests audit annotations and metrics of admission policies, and the order of policies and webhooks. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'

import { configMap, patch, startHookedPlane, type HookedPlane } from '../webhooks/hooked-plane.ts'
import { CONFIG_MAPS, type Json, PolicyPlane } from './policy-plane.ts'

describe('admission policies and webhooks', () => {
  let hooked: HookedPlane
  let plane: PolicyPlane
  before(async () => {
    hooked = await startHookedPlane()
    plane = new PolicyPlane(hooked.plane)
  })
  after(() => hooked[Symbol.asyncDispose]())
  afterEach(async () => {
    await plane.reset()
    await hooked.reset()
  })

  const apply = (expression: string, more: Json = {}): Promise<void> =>
    plane.use('mutating', {
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }],
      ...more,
    })

  it('run in this order, so that a webhook does not get requests that a policy rejects', async () => {
    hooked.respond('/see', () => ({ allowed: true }))
    await hooked.configure('validating', 'see', [{ name: 'see.ex.io' }])
    await plane.validate('false')
    assert.equal((await hooked.request('POST', CONFIG_MAPS, configMap('a'))).status, 422)
    assert.equal(hooked.requests('/see').length, 0)
  })

  it('mutate objects in this order, and again if reinvocation is allowed', async () => {
    hooked.respond('/add', () => ({ allowed: true }))
    await hooked.configure('mutating', 'add', [{ name: 'add.ex.io', reinvocationPolicy: 'IfNeeded' }])
    await apply("Object{data: {'n': object.data.n + 'x'}}", { reinvocationPolicy: 'IfNeeded' })
    const { data } = await plane.did('POST', CONFIG_MAPS, { metadata: { name: 'a' }, data: { n: '' } })
    assert.deepEqual(data, { n: 'xx' })
    const seen = hooked.requests('/add').map(({ object }) => (object as { data: Json }).data['n'])
    assert.deepEqual(seen, ['x', 'xx'])
  })

  it('run a policy again on changes of webhooks', async () => {
    hooked.respond('/add', () => patch({ op: 'add', path: '/data/w', value: 'w' }))
    await hooked.configure('mutating', 'add', [{ name: 'add.ex.io' }])
    await apply("Object{data: {'seen': has(object.data.w) ? 'yes' : 'no'}}", { reinvocationPolicy: 'IfNeeded' })
    const { data } = await plane.did('POST', CONFIG_MAPS, { metadata: { name: 'a' }, data: { n: '' } })
    assert.deepEqual(data, { n: '', seen: 'yes', w: 'w' })
  })

  it('have metrics', async () => {
    await plane.use('validating', { validations: [{ expression: 'false' }] }, { validationActions: ['Audit', 'Warn'] })
    await apply("Object{data: {'b': '2'}}")
    assert.equal((await plane.create()).status, 201)
    const { text } = await plane.request('GET', '/metrics')
    for (const action of ['audit', 'warn']) {
      const labels = `enforcement_action="${action}",error_type="invalid_error",policy="p1",policy_binding="b1"`
      assert.ok(text.includes(`apiserver_validating_admission_policy_check_total{${labels}} 1\n`), action)
    }
    const mutated =
      'apiserver_mutating_admission_policy_check_total{error_type="no_error",policy="p1",policy_binding="b1"}'
    assert.ok(text.includes(mutated))
    for (const name of ['apiserver_cel_compilation_duration_seconds', 'apiserver_cel_evaluation_duration_seconds']) {
      assert.match(text, new RegExp(`^${name}_count \\d+$`, 'm'))
    }
  })
})

describe('audit log of admission policies', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-policies-'))
  const file = join(dir, 'audit.log')
  let plane: PolicyPlane
  before(async () => {
    plane = await PolicyPlane.start({
      settings: { 'audit-policy-file': 'policy.yaml', 'audit-log-path': file, 'audit-log-maxsize': 0 },
      files: new Map([
        [
          'policy.yaml',
          JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] }),
        ],
      ]),
    })
  })
  after(async () => {
    await plane.stop()
    rmSync(dir, { recursive: true, force: true })
  })
  afterEach(() => plane.reset())

  const noted = async (id: string): Promise<Json> => {
    await plane.request('POST', CONFIG_MAPS, configMap('noted'), { 'audit-id': id })
    const events = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json)
    const { annotations } = events.findLast(({ auditID }) => auditID === id) ?? assert.fail(`No event ${id}`)
    const own = Object.entries(annotations as Json).filter(
      ([key]) => !/^(authorization|apiserver.latency).k8s.io\//.test(key),
    )
    return Object.fromEntries(own)
  }

  it('contains the first failure for bindings with action Audit', async () => {
    await plane.use(
      'validating',
      {
        validations: [
          { expression: 'false', message: 'first' },
          { expression: 'false', message: 'second' },
        ],
      },
      { validationActions: ['Audit', 'Warn'] },
    )
    const failure = {
      message: 'first',
      policy: 'p1',
      binding: 'b1',
      expressionIndex: 0,
      validationActions: ['Audit', 'Warn'],
    }
    assert.deepEqual(await noted('failure'), {
      'validation.policy.admission.k8s.io/validation_failure': JSON.stringify([failure]),
    })
  })

  it('contains annotations of policies for all parameters, without null values, up to their limit', async () => {
    const values = { hi: "'hello ' + object.metadata.name", none: 'null', empty: "' '", of: 'string(params.data.a)' }
    await plane.did(
      'POST',
      CONFIG_MAPS,
      configMap('x', { data: { a: 'x' }, metadata: { name: 'x', labels: { p: 'q' } } }),
    )
    await plane.did(
      'POST',
      CONFIG_MAPS,
      configMap('y', { data: { a: 'y'.repeat(20_000) }, metadata: { name: 'y', labels: { p: 'q' } } }),
    )
    await plane.use(
      'validating',
      {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        auditAnnotations: Object.entries(values).map(([key, valueExpression]) => ({ key, valueExpression })),
      },
      { paramRef: { selector: { matchLabels: { p: 'q' } }, parameterNotFoundAction: 'Deny' } },
    )
    assert.deepEqual(await noted('annotations'), { 'p1/hi': 'hello noted', 'p1/of': `x, ${'y'.repeat(10_240)}` })
  })

  it('prevents requests if an annotation fails to evaluate, unless failurePolicy is Ignore', async () => {
    const auditAnnotations = [{ key: 'k', valueExpression: 'string(object.data.zz)' }]
    await plane.use('validating', { auditAnnotations }, { validationActions: ['Audit'] })
    const { status, text } = await plane.create()
    assert.equal(status, 422, text)
    assert.match(text, /denied request: expression 'string\(object.data.zz\)' resulted in error: no such key: zz"/)
  })
})
