import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { sampleWrite } from '#kits/admission/sample-write.ts'
import { createVirtualClock, sleep } from '#lib/clock.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import { createChain } from './chain.ts'
import { createDefaultTolerationSeconds } from './default-toleration-seconds.ts'
import { createNodeDeclaredFeatureValidator } from './node-declared-feature-validator.ts'
import { defineAdmission, Rounds } from './plugin.ts'
import { createPodTopologyLabels } from './pod-topology-labels.ts'
import { createPriority } from './priority.ts'
import { runtimeClass } from './runtime-class.ts'

const isEnabled = (): boolean => true

function pod(spec: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('an admission plugin that does not handle a write', () => {
  it('returns undefined instead of a promise, so that the chain continues synchronously', () => {
    const { attributes } = sampleWrite({ resource: 'pods', object: pod(), oldObject: pod() })
    const { attributes: created } = sampleWrite({ resource: 'pods', object: pod() })
    assert.equal(createPriority({ isEnabled }).mutate!(attributes, new Rounds()), undefined)
    assert.equal(createNodeDeclaredFeatureValidator({ isEnabled }).validate!(attributes), undefined)
    assert.equal(runtimeClass.mutate!(created, new Rounds()), undefined)
    assert.equal(runtimeClass.validate!(created), undefined)
    assert.equal(createPodTopologyLabels({ isEnabled }).mutate!(created, new Rounds()), undefined)
    assert.equal(createDefaultTolerationSeconds().mutate!(created, new Rounds()), undefined)
  })
})

describe('admission chain', () => {
  it('runs all mutating plugins a second time, but no third time, if a plugin requests it', async () => {
    const calls: string[] = []
    const quiet = defineAdmission({
      name: 'Quiet',
      on: ['CREATE'],
      mutate: (_, round) => void calls.push(round.isSecond ? 'quiet again' : 'quiet'),
    })
    const eager = defineAdmission({
      name: 'Eager',
      on: ['CREATE'],
      mutate(_, round) {
        const times = round.memory(eager, () => ({ count: 0 }))
        calls.push(`eager ${++times.count}`)
        round.askAgain()
      },
    })
    const chain = createChain({ mutating: [quiet, eager], validating: [] })
    await chain.mutate(sampleWrite({ resource: 'pods', object: pod() }).attributes)
    assert.deepEqual(calls, ['quiet', 'eager 1', 'quiet again', 'eager 2'])
  })

  it('measures the duration and the rejections of plugins that handle a write', async () => {
    const metrics = createServerMeters()
    const clock = createVirtualClock()
    const slow = defineAdmission({ name: 'Slow', on: ['CREATE'], validate: () => sleep(clock, 30) })
    const stern = defineAdmission({
      name: 'Stern',
      on: ['CREATE'],
      validate: () => {
        throw new Error('no')
      },
    })
    const elsewhere = defineAdmission({ name: 'Elsewhere', on: ['DELETE'], validate: () => undefined })
    const chain = createChain({ mutating: [], validating: [elsewhere, slow, stern], metrics, clock })
    const { attributes } = sampleWrite({ resource: 'pods', object: pod() })
    await chain.mutate(attributes)
    const refused = assert.rejects(async () => chain.validate(attributes), /no/)
    await clock.advance(30)
    await refused
    const text = metrics.registry.render()
    const counts = [...text.matchAll(/^apiserver_admission_(\w+)_admission_duration_seconds_count\{(.*)\} 1$/gm)]
    assert.deepEqual(
      counts.map(([, what, labels]) => `${what} ${labels}`),
      [
        'controller name="Slow",operation="CREATE",rejected="false",type="validate"',
        'controller name="Stern",operation="CREATE",rejected="true",type="validate"',
        'step operation="CREATE",rejected="false",type="admit"',
        'step operation="CREATE",rejected="true",type="validate"',
      ],
    )
    assert.match(text, /controller_admission_duration_seconds_sum\{name="Slow".*\} 0\.03$/m)
  })
})
