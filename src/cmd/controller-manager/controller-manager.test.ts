import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PolicyRule } from '#apis/rbac/v1.ts'
import { bootstrapPolicy } from '#apiserver/bootstrap/roles.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { runProgram } from '#kits/cmd/run-program.ts'
import { assertUpstreamFlags } from '#kits/cmd/upstream-flags.ts'
import { userAgent } from '#model/version.ts'

import { managerConfigz } from './configz.ts'
import { controllerManager } from './controller-manager.ts'
import { MANAGER_FLAGS } from './flags.ts'

async function run(...args: string[]): Promise<string> {
  const { signal } = new AbortController()
  const { err } = await runProgram((context) => controllerManager.run(context, signal), { args })
  return err
}

describe('flags of kube-controller-manager', () => {
  it("have upstream's groups, order, types and defaults", () => {
    assertUpstreamFlags(MANAGER_FLAGS, 'kube-controller-manager')
  })

  it('state in their usage that they have no effect if no controller reads them', () => {
    const built = new Set(CONTROLLERS.map(({ name }) => name))
    for (const [group, flags] of Object.entries(MANAGER_FLAGS)) {
      if (!group.endsWith('-controller') || built.has(group)) continue
      for (const [name, flag] of Object.entries(flags)) assert.match(flag.usage, /^Accepted without effect: /, name)
    }
    assert.doesNotMatch(MANAGER_FLAGS['job-controller']?.['concurrent-job-syncs']?.usage ?? '', /without effect/)
  })

  const refusals: readonly [args: readonly string[], message: string][] = [
    [['--controllers=*,foo'], '"foo" is not in the list of known controllers'],
    [['--leader-elect-renew-deadline=15s'], 'leaseDuration must be greater than renewDeadline'],
    [['--leader-elect-retry-period=9s'], 'renewDeadline must be greater than retryPeriod*JitterFactor'],
    [['--kubeconfig=nowhere'], 'stat nowhere: no such file or directory'],
    [
      ['--cloud-config=x', '--controllers=-foo'],
      '[--cloud-config=x is not supported: cloud-controller-manager runs the cloud controllers, "foo" is not in the list of known controllers]',
    ],
  ]
  for (const [args, message] of refusals) {
    it(`are refused with "${message}": ${args.join(' ')}`, async () => {
      assert.match(await run(...args), new RegExp(`Error: ${RegExp.escape(message)}\n$`))
    })
  }

  it('report a missing API server', async () => {
    const err = await run()
    assert.match(
      err,
      /Error: invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable\n$/,
    )
  })
})

describe('RBAC rules that a controller declares', () => {
  const { clusterRoles, roles } = bootstrapPolicy(() => true)

  for (const { name, account = name, actsAsManager, rules } of CONTROLLERS) {
    it(`are a subset of the ClusterRole of its service account: ${name}`, () => {
      const wanted = actsAsManager === true ? 'system:kube-controller-manager' : `system:controller:${account}`
      // Some controllers need access only to one or two namespaces.
      const own = [...clusterRoles, ...roles].filter(({ metadata }) => metadata.name === wanted)
      assert.ok(own.length > 0, `there is no role for ${account}`)
      const granted = own.flatMap((role) => role.rules ?? [])
      const lacking = rules.flatMap(rightsOf).filter((right) => !granted.some((rule) => covers(rule, right)))
      assert.deepEqual(lacking, [])
    })
  }
})

type Right = readonly [verb: string, group: string, resource: string]

function rightsOf({ verbs, apiGroups = [], resources = [] }: PolicyRule): Right[] {
  return verbs.flatMap((verb) =>
    apiGroups.flatMap((group) => resources.map((resource): Right => [verb, group, resource])),
  )
}

function covers(rule: PolicyRule, [verb, group, resource]: Right): boolean {
  const has = (list: readonly string[] = [], wanted: string): boolean => list.includes('*') || list.includes(wanted)
  return has(rule.verbs, verb) && has(rule.apiGroups, group) && has(rule.resources, resource)
}

describe('page /configz of kube-controller-manager', () => {
  const shown = JSON.stringify(managerConfigz(MANAGER_FLAGS, { 'service-cluster-ip-range': '10.0.0.0/24,fd00::/112' }))

  it('shows every setting under its configuration name', () => {
    assert.ok(shown.startsWith('{"kubecontrollermanager.config.k8s.io":{"kind":"KubeControllerManagerConfiguration",'))
    for (const part of [
      '"MinResyncPeriod":"12h0m0s"',
      '"Controllers":["*"]',
      '"NodeMonitorPeriod":"5s"',
      '"ServiceCIDR":"10.0.0.0/24","SecondaryServiceCIDR":"fd00::/112"',
      '"UnhealthyZoneThreshold":0.55',
      '"ClusterSigningDuration":"8760h0m0s"',
      '"ResourceClaimController":{"ConcurrentSyncs":50}}}',
    ]) {
      assert.ok(shown.includes(part), part)
    }
  })

  it('refers only to existing flags', () => {
    const names = Object.values(MANAGER_FLAGS).flatMap((flags) => Object.keys(flags))
    const values = Object.fromEntries(names.map((name) => [name, null]))
    const isFilled = (value: unknown): boolean =>
      typeof value === 'object' && value !== null ? Object.values(value).every(isFilled) : value !== undefined
    assert.ok(isFilled(managerConfigz(MANAGER_FLAGS, values)))
  })
})

describe('User-Agent of a controller', () => {
  it("consists of program, version and platform as upstream's", () => {
    assert.match(
      userAgent('kube-controller-manager'),
      /^kube-controller-manager\/v1\.36\.4\S* \(\S+\/\S+\) kubernetes\/\S+$/,
    )
  })
})
