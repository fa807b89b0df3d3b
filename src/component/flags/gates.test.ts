import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { groups } from '#apis/kinds.ts'

import { createGates, FEATURE_GATES, gateErrors } from './gates.ts'

describe('feature gates', () => {
  it('include every gate that an API kind depends on', () => {
    const used = groups.flatMap(({ versions }) =>
      versions.flatMap(({ kinds }) => kinds.flatMap(({ gate = [] }) => gate)),
    )
    assert.deepEqual(
      [...new Set(used)].filter((gate) => FEATURE_GATES[gate] === undefined),
      [],
    )
  })

  it('have names of one word', () => {
    assert.deepEqual(
      Object.keys(FEATURE_GATES).filter((name) => !/^[A-Z][A-Za-z0-9]+$/.test(name)),
      [],
    )
  })

  for (const [settings, gate, expected] of [
    [{}, 'WatchList', true],
    [{}, 'GenericWorkload', false],
    [{ AllAlpha: true }, 'GenericWorkload', true],
    [{ AllAlpha: true, GenericWorkload: false }, 'GenericWorkload', false],
    [{ AllBeta: true }, 'PodCertificateRequest', true],
    [{ AllBeta: false }, 'WatchList', false],
    [{ AllAlpha: false }, 'SidecarContainers', true],
  ] as const) {
    it(`leave ${gate} ${expected ? 'on' : 'off'} with ${JSON.stringify(settings)}`, () => {
      assert.equal(createGates(new Map(Object.entries(settings)))(gate), expected)
    })
  }

  for (const [settings, errors] of [
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
    it(`have ${errors.length === 0 ? 'all' : 'not all'} their prerequisites with ${JSON.stringify(settings)}`, () => {
      assert.deepEqual(gateErrors(new Map(Object.entries(settings))), errors)
    })
  }
})
