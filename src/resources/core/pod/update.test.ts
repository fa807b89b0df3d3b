import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { NodeSelectorTerm, PodSpec } from '#apis/core/v1.ts'

import { contextWith, podOf, type PodPatch, textsOf, web } from './pod.suite.ts'
import { validatePodUpdate } from './update.ts'

const changes = (old: PodPatch, next: PodPatch): string[] =>
  textsOf(validatePodUpdate(podOf(next), podOf(old), contextWith()))

const specChange = (old: Partial<PodSpec>, next: Partial<PodSpec>): string[] => changes({ spec: old }, { spec: next })

const REFUSED =
  'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n'

const toleration = { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }

describe('update of a pod', () => {
  it('may change images, shorten activeDeadlineSeconds, add tolerations and remove scheduling gates', () => {
    const old = {
      containers: [web()],
      initContainers: [web({ name: 'i' })],
      activeDeadlineSeconds: 10,
      tolerations: [toleration],
      schedulingGates: [{ name: 'a' }, { name: 'b' }],
    }
    const next = {
      containers: [web({ image: 'nginx:2' })],
      initContainers: [web({ name: 'i', image: 'x:1' })],
      activeDeadlineSeconds: 5,
      tolerations: [
        { ...toleration, tolerationSeconds: 9 },
        { key: 'b', operator: 'Exists' },
      ],
      schedulingGates: [{ name: 'b' }],
    }
    // The pull policy was chosen at creation.
    for (const one of next.containers) one.imagePullPolicy = 'IfNotPresent'
    assert.deepEqual(specChange(old, next), [])
  })

  it('accepts an equal quantity in another notation', () => {
    const amount = (memory: string): Partial<PodSpec> => ({
      containers: [web({ resources: { requests: { memory } } })],
    })
    assert.deepEqual(specChange(amount('1Gi'), amount('1073741824')), [])
  })

  it('rejects changes of any other field, with the differences in its error', () => {
    assert.deepEqual(specChange({ hostname: 'a' }, { hostname: 'b', subdomain: 'c' }), [
      `${REFUSED}  spec.hostname: "a" -> "b"\n  spec.subdomain: <unset> -> "c"`,
    ])
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`k${at}`, 'v']))
    const [text = ''] = specChange({}, { nodeSelector: many })
    assert.match(text, /spec\.nodeSelector: <unset> -> \{"k0":"v"/)
  })

  const refused: readonly [Partial<PodSpec>, Partial<PodSpec>, string[]][] = [
    [
      {},
      { containers: [web(), web({ name: 'b' })] },
      ['spec.containers: Forbidden: pod updates may not add or remove containers'],
    ],
    [
      { tolerations: [toleration] },
      {},
      ['spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds'],
    ],
    [
      { schedulingGates: [{ name: 'a' }] },
      { schedulingGates: [{ name: 'b' }] },
      ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'"],
    ],
    [
      { activeDeadlineSeconds: 5 },
      { activeDeadlineSeconds: 6 },
      ['spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value'],
    ],
    [
      { activeDeadlineSeconds: 5 },
      {},
      ['spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value'],
    ],
  ]
  for (const [old, next, errors] of refused) {
    it(`rejects a change from ${JSON.stringify(old)} to ${JSON.stringify(next)}`, () => {
      assert.deepEqual(specChange(old, next), errors)
    })
  }

  const terms = (...nodeSelectorTerms: NodeSelectorTerm[]): Partial<PodSpec> => ({
    schedulingGates: [{ name: 'g' }],
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  })
  const exists = (key: string): { key: string; operator: string } => ({ key, operator: 'Exists' })
  const TERMS = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'

  it('may restrict the node selection of a pod with scheduling gates', () => {
    const gated = { schedulingGates: [{ name: 'g' }] }
    assert.deepEqual(specChange(gated, { ...gated, nodeSelector: { a: 'b' } }), [])
    assert.deepEqual(specChange(gated, terms({ matchExpressions: [exists('a')] })), [])
    const one = { matchExpressions: [exists('a')] }
    const two = { matchExpressions: [exists('a'), exists('b')] }
    assert.deepEqual(specChange(terms(one), terms(two)), [])
    assert.match(specChange({}, { nodeSelector: { a: 'b' } })[0] ?? '', /pod updates may not change fields/)
  })

  it('rejects a wider node selection of a pod with scheduling gates', () => {
    const one = { matchExpressions: [exists('a')] }
    assert.deepEqual(specChange(terms(one), terms({ matchExpressions: [exists('b')] })), [
      `${TERMS}[0]: Invalid value: {"matchExpressions":[{"key":"b","operator":"Exists"}]}: only additions are allowed (no mutations or deletions)`,
    ])
    assert.deepEqual(specChange(terms(one), { schedulingGates: [{ name: 'g' }] }), [
      `${TERMS}: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed`,
    ])
    const selected = { schedulingGates: [{ name: 'g' }], nodeSelector: { a: 'b' } }
    assert.deepEqual(specChange(selected, { ...selected, nodeSelector: { a: 'c' } }), [
      'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
    ])
  })

  it('rejects changes of annotations that other components own', () => {
    const armor = 'container.apparmor.security.beta.kubernetes.io/web'
    const mirror = 'kubernetes.io/config.mirror'
    const spec = { nodeName: 'n' }
    const annotated = (annotations: Record<string, string>): PodPatch => ({ metadata: { annotations }, spec })
    assert.deepEqual(changes(annotated({ [armor]: 'unconfined', [mirror]: 'x' }), annotated({ a: 'b' })), [
      `metadata.annotations[${armor}]: Forbidden: may not remove or update AppArmor annotations`,
      `metadata.annotations[${mirror}]: Forbidden: may not remove or update mirror pod annotation`,
    ])
    assert.deepEqual(changes(annotated({}), annotated({ [armor]: 'unconfined', [mirror]: 'x' })), [
      `metadata.annotations[${armor}]: Forbidden: may not add AppArmor annotations`,
      `metadata.annotations[${mirror}]: Forbidden: may not add mirror pod annotation`,
    ])
  })

  it('takes linear time for many tolerations', () => {
    const many = Array.from({ length: 20_000 }, (_, at) => ({ key: `k${at}`, operator: 'Exists' }))
    assert.deepEqual(specChange({ tolerations: many }, { tolerations: many.toReversed() }), [])
  })
})
