/**
 * Tests mutating admission policies over HTTP: changes to objects, their order, and failures. Expected values were
 * captured from v1.36.4.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'

import type { ControlPlaneResponse } from '#testing/control-plane.ts'

import { about, type Json, PolicyPlane } from './policy-plane.ts'

const DENIED = "policy 'p1' with binding 'b1' denied request: "

const apply = (expression: string): Json => ({ patchType: 'ApplyConfiguration', applyConfiguration: { expression } })
const patch = (...operations: readonly string[]): Json => ({
  patchType: 'JSONPatch',
  jsonPatch: { expression: `[${operations.map((one) => `JSONPatch{${one}}`).join(', ')}]` },
})

interface ConfigMapBody {
  readonly metadata: {
    readonly name: string
    readonly annotations?: Json
    readonly labels?: Json
    readonly managedFields?: unknown
  }
  readonly data?: Json
}

describe('MutatingAdmissionPolicy', () => {
  let plane: PolicyPlane
  before(async () => {
    plane = await PolicyPlane.start()
  })
  after(() => plane.stop())
  afterEach(() => plane.reset())

  const mutate = (mutations: Json | readonly Json[], more: Json = {}, binding: Json = {}): Promise<void> =>
    plane.use('mutating', { mutations: [mutations].flat(), ...more }, binding)
  const made = async (data?: Json, metadata?: Json): Promise<ConfigMapBody> => {
    const answer = await plane.create(data, metadata)
    assert.equal(answer.status, 201, answer.text)
    return answer.json() as unknown as ConfigMapBody
  }
  const refused = async (data?: Json): Promise<{ code: number; reason: string; message: string; details: Json }> => {
    const answer: ControlPlaneResponse = await plane.create(data)
    assert.notEqual(answer.status, 201, answer.text)
    return answer.json() as never
  }

  it('merges its apply configuration without a managedFields entry', async () => {
    await mutate(apply("Object{metadata: Object.metadata{labels: {'env': 'test'}}, data: {'b': object.data.a + '2'}}"))
    const { metadata, data } = await made({ a: '1' }, { labels: { x: 'y' } })
    assert.deepEqual(data, { a: '1', b: '12' })
    assert.deepEqual(metadata.labels, { env: 'test', x: 'y' })
    const owned = JSON.stringify(metadata.managedFields)
    assert.ok(owned.includes('f:a') && !owned.includes('f:b') && !owned.includes('f:env'), owned)
  })

  it('merges lists by their keys', async () => {
    await mutate(
      apply(`Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
        initContainers: [Object.spec.template.spec.initContainers{name: 'mesh', image: 'mesh:1'}],
        containers: [Object.spec.template.spec.containers{name: 'web', env: [Object.spec.template.spec.containers.env{name: 'A', value: 'b'}]}]
      }}}}`),
      { matchConstraints: about('deployments', { apiGroups: ['apps'] }) },
    )
    const labels = { app: 'x' }
    const containers = [
      { name: 'other', image: 'o' },
      { name: 'web', image: 'w' },
    ]
    const { spec } = (await plane.did('POST', '/apis/apps/v1/namespaces/default/deployments', {
      metadata: { name: 'web' },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    })) as { spec: { template: { spec: { initContainers: Json[]; containers: Json[] } } } }
    const { initContainers, containers: all } = spec.template.spec
    assert.deepEqual(
      initContainers.map(({ name }) => name),
      ['mesh'],
    )
    assert.deepEqual(
      all.map(({ name, image, env }) => [name, image, env]),
      [
        ['other', 'o', undefined],
        ['web', 'w', [{ name: 'A', value: 'b' }]],
      ],
    )
  })

  it('fails for configurations that violate the schema or replace the whole object', async () => {
    const table: readonly (readonly [expression: string, why: string])[] = [
      ["Object{zork: 'x'}", 'failed to convert patch object to typed object: .zork: field not declared in schema'],
      [
        "Object{data: {'ac': 5}}",
        'failed to convert patch object to typed object: .data.ac: expected string, got &value.valueUnstructured{Value:5}',
      ],
    ]
    for (const [expression, why] of table) {
      await mutate(apply(expression))
      const { code, reason, message } = await refused()
      assert.deepEqual([code, reason, message], [403, 'Invalid', `${DENIED}error applying patch: ${why}`])
      await plane.reset()
    }
    await mutate(apply("Object{metadata: Object.wrong{labels: {'a': 'b'}}}"))
    assert.equal(
      (await refused()).message,
      `${DENIED}type mismatch: unexpected type name "Object.wrong", expected "Object.metadata", which matches field name path from root Object type`,
    )
  })

  it('cannot apply atomic fields', async () => {
    await mutate(
      apply("Object{spec: Object.spec{nodeSelector: {'a': 'b'}, tolerations: [Object.spec.tolerations{key: 'k'}]}}"),
      { matchConstraints: about('pods') },
    )
    const answer = await plane.request('POST', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    })
    assert.equal(
      (answer.json() as { message: string }).message,
      `${DENIED}error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector, .spec.tolerations`,
    )
  })

  it('applies JSON patches', async () => {
    await mutate(
      patch(
        "op: 'test', path: '/data/a', value: '1'",
        "op: 'add', path: '/metadata/annotations', value: {'x/y': 'z'}",
        "op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('p/q'), value: object.metadata.name",
        "op: 'replace', path: '/data/new', value: 'n'",
        "op: 'copy', from: '/data/a', path: '/data/copied'",
        "op: 'remove', path: '/data/a'",
      ),
    )
    const { metadata, data } = await made({ a: '1' })
    assert.deepEqual(metadata.annotations, { 'p/q': metadata.name, 'x/y': 'z' })
    assert.deepEqual(data, { copied: '1', new: 'n' })
  })

  it('skips a mutation whose JSON patch test fails, but not the next mutation', async () => {
    await mutate([
      patch("op: 'add', path: '/data/b', value: '2'", "op: 'test', path: '/data/a', value: '9'"),
      patch("op: 'add', path: '/data/c', value: '3'"),
    ])
    assert.deepEqual((await made({ a: '1' })).data, { a: '1', c: '3' })
  })

  it('may change the name of a new object', async () => {
    await mutate(patch("op: 'replace', path: '/metadata/name', value: 'other'"))
    assert.equal((await made()).metadata.name, 'other')
  })

  it('reports an invalid patch', async () => {
    const table: readonly (readonly [operation: string, why: string])[] = [
      [
        "op: 'replace', path: '/nope/x', value: 1",
        'replace operation does not apply: doc is missing path: /nope/x: missing value',
      ],
      [
        "op: 'add', path: '/metadata/annotations/x', value: 'y'",
        'add operation does not apply: doc is missing path: "/metadata/annotations/x": missing value',
      ],
      [
        "op: 'remove', path: '/data/nope'",
        "error in remove for path: '/data/nope': Unable to remove nonexistent key: nope: missing value",
      ],
      ["op: 'foo', path: '/x'", 'Unexpected kind: foo'],
    ]
    for (const [operation, why] of table) {
      await mutate(patch(operation))
      const { code, reason, message } = await refused()
      assert.deepEqual([code, reason, message], [403, 'Invalid', `${DENIED}JSON Patch: ${why}`])
      await plane.reset()
    }
  })

  it('fails the request if the patched object cannot be decoded, with any failurePolicy', async () => {
    const table: readonly (readonly [operation: string, why: string])[] = [
      [
        "op: 'add', path: '/data/b', value: 5",
        'json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
      ],
      ["op: 'add', path: '/zork', value: 5", 'strict decoding error: unknown field "zork"'],
    ]
    for (const [operation, why] of table) {
      await mutate(patch(operation), { failurePolicy: 'Ignore' })
      const { code, reason, message } = await refused()
      assert.deepEqual([code, reason, message], [500, 'InternalError', `Internal error occurred: ${why}`])
      await plane.reset()
    }
  })

  it('rejects the request with 403 Invalid if an expression fails, or ignores the policy with failurePolicy Ignore', async () => {
    const mutation = apply("Object{data: {'b': object.data.zz}}")
    await mutate(mutation)
    const text = `${DENIED}expression 'Object{data: {'b': object.data.zz}}' resulted in error: no such key: zz`
    const { code, reason, message, details } = await refused()
    assert.deepEqual([code, reason, message, details['causes']], [403, 'Invalid', text, [{ message: text }]])
    await plane.reset()
    await mutate(mutation, { failurePolicy: 'Ignore' })
    await made()
  })

  it('fails with reason Forbidden if its parameters are missing', async () => {
    await mutate(
      apply('Object{}'),
      { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } },
      { paramRef: { name: 'none', parameterNotFoundAction: 'Deny' } },
    )
    const { code, reason, message } = await refused()
    const why = 'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction'
    assert.deepEqual([code, reason, message], [403, 'Forbidden', `${DENIED}${why}`])
  })

  it('runs in order of names, each policy on the result of the previous one', async () => {
    await made({ suffix: '!' }, { name: 'limits' })
    for (const [name, letter] of [
      ['p2', 'b'],
      ['p1', 'a'],
    ] as const) {
      const { status, text } = await plane.policy('mutating', name, {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        variables: [{ name: 'n', expression: `object.data.n + '${letter}'` }],
        matchConditions: [{ name: 'c', expression: 'has(object.data.n)' }],
        mutations: [apply("Object{data: {'n': variables.n + params.data.suffix}}")],
      })
      assert.equal(status, 201, text)
      await plane.binding('mutating', name, name, { paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' } })
    }
    assert.deepEqual((await made({ n: '' })).data, { n: 'a!b!' })
    assert.deepEqual((await made({ m: '' })).data, { m: '' })
  })

  it('runs twice with reinvocationPolicy IfNeeded', async () => {
    const mutation = apply("Object{data: {'n': object.data.n + 'x'}}")
    await mutate(mutation, { reinvocationPolicy: 'IfNeeded' })
    assert.deepEqual((await made({ n: '' })).data, { n: 'xx' })
    await plane.reset()
    await mutate(mutation)
    assert.deepEqual((await made({ n: '' })).data, { n: 'x' })
  })

  it('runs before validating policies', async () => {
    await mutate(apply("Object{data: {'b': '2'}}"))
    await plane.validate("object.data.b == '2'")
    await made()
  })
})
