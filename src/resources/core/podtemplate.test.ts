import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodTemplate } from '#apis/core/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'

import { podTemplate } from './podtemplate.ts'

const context = { isEnabled: (gate: string) => gate !== 'GenericWorkload', allowPrivileged: true } as WriteContext

function templateOf(patch: Partial<PodTemplate['template']['spec']> = {}, generation = 1): PodTemplate {
  const containers = [
    { name: 'a', image: 'x:1', resources: {} },
    { name: 'b', image: 'y', resources: {} },
  ]
  const object: PodTemplate = {
    metadata: { name: 't', generation },
    template: { metadata: { labels: { b: '2', a: '1' } }, spec: { containers, ...patch } },
  }
  podTemplate.applyDefaults?.(object, context)
  return object
}

describe('PodTemplate', () => {
  it('sets defaults and drops fields of disabled gates', () => {
    const object = templateOf({ schedulingGroup: { podGroupName: 'g' } })
    podTemplate.prepareCreate?.(object, context)
    assert.equal(object.template.spec.restartPolicy, 'Always')
    assert.equal(object.template.spec.schedulingGroup, undefined)
    const kept = templateOf({ schedulingGroup: { podGroupName: 'g' } })
    podTemplate.prepareUpdate?.(kept, templateOf({ schedulingGroup: { podGroupName: 'f' } }), context)
    assert.deepEqual(kept.template.spec.schedulingGroup, { podGroupName: 'g' })
  })

  it('validates its template, also on update', () => {
    const bad = templateOf({ restartPolicy: 'Perhaps' })
    const texts = [
      'template.spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "OnFailure", "Never"',
    ]
    assert.deepEqual(podTemplate.validate?.(templateOf(), context), [])
    assert.deepEqual(podTemplate.validate?.(bad, context).map(fieldErrorText), texts)
    assert.deepEqual(podTemplate.validateUpdate?.(bad, templateOf(), context).map(fieldErrorText), texts)
  })

  it('warns on update only if the template has changed', () => {
    const odd = { terminationGracePeriodSeconds: -1 }
    const warning =
      'template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1'
    assert.deepEqual(podTemplate.warnings?.(templateOf(odd), undefined), [warning])
    assert.deepEqual(podTemplate.warnings?.(templateOf(odd), templateOf(odd)), [])
    assert.deepEqual(podTemplate.warnings?.(templateOf(odd, 2), templateOf({})), [warning])
  })

  it('prints containers, images and labels', () => {
    const cells = podTemplate.columns?.map((column) => [column.name, column.value(templateOf(), 0)])
    assert.deepEqual(cells, [
      ['Name', 't'],
      ['Containers', 'a,b'],
      ['Images', 'x:1,y'],
      ['Pod Labels', 'a=1,b=2'],
    ])
  })
})
