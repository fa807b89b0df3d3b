import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Outcome, runProgram } from '#kits/cmd/run-program.ts'
import { assertUpstreamFlags } from '#kits/cmd/upstream-flags.ts'

import { PROXY_FLAGS } from './flags.ts'
import { proxy } from './proxy.ts'

const HEAD = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n'

function run(files: Readonly<Record<string, string>>, ...args: string[]): Promise<Outcome> {
  const { signal } = new AbortController()
  const readFile = (path: string): Promise<string> =>
    Object.hasOwn(files, path)
      ? Promise.resolve(files[path] ?? '')
      : Promise.reject(Object.assign(new Error('gone'), { code: 'ENOENT' }))
  return runProgram((context) => proxy.run(context, signal), { args, readFile })
}

async function errorOf(files: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
  const { err, code } = await run(files, ...args)
  assert.equal(code, 1)
  return /Error: ([^]*)\n$/.exec(err)?.[1] ?? err
}

describe('flags of kube-proxy', () => {
  it("have upstream's names, types and defaults", () => {
    assertUpstreamFlags(PROXY_FLAGS, 'kube-proxy')
  })

  const refusals: readonly [args: readonly string[], message: RegExp][] = [
    [['--proxy-mode=ipvs'], /^mode "ipvs" is not supported: use nftables or iptables$/],
    [['--proxy-mode=userspace'], /KubeProxyConfiguration\.ProxyMode: Invalid value: "userspace": must be iptables/],
    [['--cluster-cidr=10.0.0.0/33'], /ClusterCIDR: Invalid value: "10\.0\.0\.0\/33": must be a valid CIDR block/],
    [['--detect-local-mode=BridgeInterface'], /InterfaceName: Invalid value: "": must not be empty/],
    [['--nodeport-addresses=primary,10.0.0.0/8'], /NodePortAddresses: Invalid value: "primary"/],
    [['--iptables-masquerade-bit=32'], /MasqueradeBit: Invalid value: "32": must be within the range \[0, 31\]/],
    [['--config=/none.yaml'], /^failed complete: open \/none\.yaml: no such file or directory$/],
  ]
  for (const [args, message] of refusals)
    it(`are refused: ${args.join(' ')}`, async () => assert.match(await errorOf({}, ...args), message))
})

describe('configuration of kube-proxy', () => {
  it('is read from a file, and errors contain the name of the field', async () => {
    assert.match(await errorOf({ '/c.yaml': `${HEAD}mode: ipvs\n` }, '--config=/c.yaml'), /mode "ipvs"/)
    assert.match(await errorOf({ '/c.yaml': `${HEAD}mode: [x]\n` }, '--config=/c.yaml'), /^failed complete: /)
    assert.match(
      await errorOf({ '/c.yaml': 'kind: Other\napiVersion: v1\n' }, '--config=/c.yaml'),
      /^failed complete: /,
    )
  })

  it('from a file takes precedence over flags', async () => {
    const file = { '/c.yaml': `${HEAD}mode: ipvs\n` }
    assert.match(await errorOf(file, '--config=/c.yaml', '--proxy-mode=nftables'), /mode "ipvs"/)
  })
})
