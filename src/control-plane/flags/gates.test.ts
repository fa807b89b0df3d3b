import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { groups } from '#apis/kinds.ts'

import { createGates, FEATURE_GATES, gateErrors } from './gates.ts'

describe('feature gates', () => {
  it('has every gate that a kind hangs on', () => {
    const used = groups.flatMap(({ versions }) =>
      versions.flatMap(({ kinds }) => kinds.flatMap(({ gate = [] }) => gate)),
    )
    assert.deepEqual(
      [...new Set(used)].filter((gate) => FEATURE_GATES[gate] === undefined),
      [],
    )
  })

  it('has a name of one word for each', () => {
    assert.deepEqual(
      Object.keys(FEATURE_GATES).filter((name) => !/^[A-Z][A-Za-z0-9]+$/.test(name)),
      [],
    )
  })

  for (const [asked, gate, expected] of [
    [{}, 'WatchList', true],
    [{}, 'GenericWorkload', false],
    [{ AllAlpha: true }, 'GenericWorkload', true],
    [{ AllAlpha: true, GenericWorkload: false }, 'GenericWorkload', false],
    [{ AllBeta: true }, 'PodCertificateRequest', true],
    [{ AllBeta: false }, 'WatchList', false],
    [{ AllAlpha: false }, 'SidecarContainers', true],
  ] as const) {
    it(`finds ${gate} ${expected ? 'on' : 'off'} with ${JSON.stringify(asked)}`, () => {
      assert.equal(createGates(new Map(Object.entries(asked)))(gate), expected)
    })
  }

  for (const [asked, errors] of [
    [{}, []],
    [{ AllAlpha: true, AllBeta: true }, []],
    [{ AllAlpha: false, AllBeta: false }, []],
    [
      { GangScheduling: true },
      ['GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]'],
    ],
    [
      { ClusterTrustBundleProjection: true, WorkloadAwarePreemption: true },
      [
        'ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]',
        'WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]',
      ],
    ],
    [
      { AllBeta: false, InPlacePodLevelResourcesVerticalScaling: true },
      [
        'InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: [NodeDeclaredFeatures PodLevelResources]',
      ],
    ],
  ] as const) {
    it(`finds ${errors.length} gates without what they need in ${JSON.stringify(asked)}`, () => {
      assert.deepEqual(gateErrors(new Map(Object.entries(asked))), errors)
    })
  }
})
