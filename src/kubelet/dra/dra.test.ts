import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Container, Pod } from '#apis/core/v1.ts'

import { CLAIM_STATES, type ClaimState } from './claim-state.ts'
import { cdiDevicesOf, claimNamesOf } from './pod-claims.ts'

function claimState(devices: readonly { requests: string[]; cdi: string }[]): ClaimState {
  return {
    ClaimUID: 'c1',
    ClaimName: 'claim',
    Namespace: 'ns',
    PodUIDs: { u1: {} },
    DriverState: {
      'd.example.com': {
        Devices: devices.map(({ requests, cdi }, at) => ({
          PoolName: 'p',
          DeviceName: `dev-${at}`,
          ShareID: null,
          RequestNames: requests,
          CDIDeviceIDs: [cdi],
        })),
      },
    },
  }
}

test('the checkpoint of prepared ResourceClaims survives a round trip, and a corrupt file counts as empty', () => {
  const claims = [claimState([{ requests: ['gpu'], cdi: 'd/gpu=0' }])]
  const text = CLAIM_STATES.print(claims)
  assert.deepEqual(CLAIM_STATES.parse(text), claims)
  assert.equal(CLAIM_STATES.parse(text.replace('dev-0', 'dev-1')), undefined)
  assert.throws(() => CLAIM_STATES.parse(''))
})

function podWith(claims: NonNullable<Pod['spec']['resourceClaims']>, status: Partial<Pod['status']> = {}): Pod {
  return {
    metadata: { namespace: 'ns', name: 'p', uid: 'u1' },
    spec: { containers: [], resourceClaims: claims },
    status,
  }
}

test('ResourceClaims from templates are found by their names in the pod’s status', () => {
  const claims = [
    { name: 'own', resourceClaimName: 'claim' },
    { name: 'made', resourceClaimTemplateName: 't' },
  ]
  assert.throws(() => claimNamesOf(podWith(claims)), /ResourceClaim not created yet/)
  const made = podWith(claims, { resourceClaimStatuses: [{ name: 'made', resourceClaimName: 'p-made-x' }] })
  assert.deepEqual([...claimNamesOf(made).values()], ['claim', 'p-made-x'])
  const unneeded = podWith(claims, { resourceClaimStatuses: [{ name: 'made' }] })
  assert.deepEqual([...claimNamesOf(unneeded).values()], ['claim'])
})

test('a container gets the CDI devices of its resource claim requests', () => {
  const pod = podWith([{ name: 'own', resourceClaimName: 'claim' }])
  const claims = new Map([
    [
      'claim',
      claimState([
        { requests: ['gpu/large'], cdi: 'd/gpu=0' },
        { requests: ['nic'], cdi: 'd/nic=0' },
        { requests: [], cdi: 'd/all=0' },
      ]),
    ],
  ])
  const using = (request?: string): string[] => {
    const used = [{ name: 'own', ...(request !== undefined && { request }) }]
    return cdiDevicesOf(pod, { name: 'c', resources: { claims: used } }, claims)
  }
  assert.deepEqual(using(), ['d/gpu=0', 'd/nic=0', 'd/all=0'])
  assert.deepEqual(using('gpu'), ['d/gpu=0', 'd/all=0'])
  assert.deepEqual(using('nic'), ['d/nic=0', 'd/all=0'])
  const other: Container = { name: 'c', resources: {} }
  assert.deepEqual(cdiDevicesOf(pod, other, claims), [])
})
