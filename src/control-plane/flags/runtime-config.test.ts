import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { groups, type Kind } from '#apis/kinds.ts'
import { configurationMap } from '#component/flags/flag-kinds.ts'

import { createServedRule, gatedResources, goneVersions, runtimeConfigErrors } from './runtime-config.ts'

function kindOf(group: string, version: string, plural: string): Kind {
  const found = groups
    .find(({ name }) => name === group)
    ?.versions.find((one) => one.version === version)
    ?.kinds.find((kind) => kind.plural === plural)
  assert.ok(found, `${group}/${version}/${plural}`)
  return found
}

describe('flag --runtime-config', () => {
  const pods = kindOf('', 'v1', 'pods')
  const deployments = kindOf('apps', 'v1', 'deployments')
  const bundles = kindOf('certificates.k8s.io', 'v1beta1', 'clustertrustbundles')
  for (const [text, kind, gateOn, expected] of [
    ['', pods, true, true],
    ['', deployments, true, true],
    ['', bundles, true, false],
    ['v1=false', pods, true, false],
    ['apps/v1=false', deployments, true, false],
    ['apps/v1=false', pods, true, true],
    ['apps/v1/deployments=false', deployments, true, false],
    ['apps/v1=false,apps/v1/deployments=true', deployments, true, true],
    ['api/beta=true', bundles, true, true],
    ['api/beta=true', bundles, false, false],
    ['api/beta=true,certificates.k8s.io/v1beta1=false', bundles, true, false],
    ['certificates.k8s.io/v1beta1', bundles, true, true],
    ['certificates.k8s.io/v1beta1=true', bundles, false, false],
    ['api/all=false,v1=true', pods, true, true],
    ['api/all=false,v1=true', deployments, true, false],
    ['api/all=false,api/ga=true', deployments, true, true],
    ['api/all=true', bundles, true, true],
    ['api/all=true,api/beta=false', bundles, true, false],
  ] as const) {
    it(`${expected ? 'serves' : 'omits'} ${kind.plural} with "${text}" and the feature gate ${gateOn ? 'on' : 'off'}`, () => {
      assert.equal(createServedRule(configurationMap.parse(text), () => gateOn)(kind), expected)
    })
  }

  for (const [text, errors] of [
    ['', []],
    ['api/all=true,apps/v1=false,v1=true', []],
    ['authorization.k8s.io/v1beta1=true', []],
    ['node.k8s.io/v1beta1=true,extensions/v1beta1=true,extensions/v1beta1/ingresses=false', []],
    ['flowcontrol.apiserver.k8s.io/v1beta1,flowcontrol.apiserver.k8s.io/v1beta2,discovery.k8s.io/v1beta1', []],
    ['batch/v2alpha1=true', ['group version batch/v2alpha1 that has not been registered']],
    ['api/all=false', ['invalid runtime-config with only api/all=false']],
    ['zork/v1=true,b/v1', ['unknown api groups b/v1,zork/v1']],
    ['apps/v7=true', ['group version apps/v7 that has not been registered']],
    ['apps/v1=perhaps', ['invalid value apps/v1=perhaps']],
    [
      'apps/v1/Deployment=true',
      [
        'invalid key apps/v1/Deployment: group/version/resource and resource is always lowercase plural, not "Deployment"',
      ],
    ],
  ] as const) {
    it(`${errors.length === 0 ? 'accepts' : 'rejects'} "${text}"`, () => {
      assert.deepEqual(runtimeConfigErrors(configurationMap.parse(text)), errors)
    })
  }

  it('lists requested versions that Kubernetes has removed', () => {
    const config = configurationMap.parse('authorization.k8s.io/v1beta1=true,apps/v1beta1=false,apps/v1=true')
    assert.deepEqual(goneVersions(config), ['authorization.k8s.io/v1beta1'])
  })

  it('lists requested versions that stay off because of their feature gate', () => {
    const off = (text: string, gate?: string): string[] =>
      gatedResources(configurationMap.parse(text), (one) => one === gate)
    assert.deepEqual(off(''), [])
    assert.deepEqual(off('api/all=true', 'GenericWorkload'), [
      'ClusterTrustBundle storage is disabled because the ClusterTrustBundle feature gate is disabled',
      'PodCertificateRequest storage is disabled because the PodCertificateRequest feature gate is disabled',
      'ClusterTrustBundle storage is disabled because the ClusterTrustBundle feature gate is disabled',
      'StorageVersionMigrator storage is disabled because the StorageVersionMigrator feature gate is disabled',
    ])
    assert.deepEqual(off('scheduling.k8s.io/v1alpha2/workloads=true'), [
      'Workload storage is disabled because the GenericWorkload feature gate is disabled',
    ])
  })
})
