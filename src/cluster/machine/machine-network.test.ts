import assert from 'node:assert/strict'
import { test } from 'node:test'

import { containerdPaths } from '#containerd/paths.ts'

import { guard } from './machine-network.ts'

test('the firewall rules block outside traffic to nodes and the pod gateway, but not to pods', () => {
  const text = guard(containerdPaths('/data'), '10.108.0.0/24,fd01::/64', '10.244.0.0/16,fd02::/56')
  const chain = (name: string): string => new RegExp(`chain ${name} \\{[^]*?\\n {2}\\}`).exec(text)?.[0] ?? ''
  const guarded = (name: string): string[] =>
    [...chain(name).matchAll(/daddr (\S+) ct state new drop/g)].map(([, range]) => range ?? '')
  assert.deepEqual(guarded('input'), ['10.108.0.0/24', 'fd01::/64', '10.244.0.0/16', 'fd02::/56'])
  assert.deepEqual(guarded('forward'), ['10.108.0.0/24', 'fd01::/64'])
  assert.match(chain('postrouting'), /ip6 saddr fd01::\/64 ip6 daddr != fd01::\/64 oifname != \{.*\} masquerade/)
})
