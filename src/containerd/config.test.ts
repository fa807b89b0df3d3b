import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { containerdConfig, type ContainerdSettings } from './config.ts'
import { networkConfig } from './network.ts'
import { containerdPaths } from './paths.ts'
import { versionIn } from './programs.ts'
import { toml } from './toml.ts'

const places = containerdPaths('/var/lib/hyperkube')

const settings: ContainerdSettings = {
  places,
  major: 1,
  runc: '/usr/sbin/runc',
  plugins: '/usr/lib/cni',
  snapshotter: 'overlayfs',
  sandboxImage: 'hyperkube.local/pause:1',
  mayLowerOomScore: false,
}

describe('containerdPaths() of a private containerd', () => {
  it('derives distinct names from the data directory, within 107 bytes for sockets and 15 for bridges', () => {
    assert.deepEqual(containerdPaths('/var/lib/hyperkube/'), places)
    const other = containerdPaths(`/home/${'long/'.repeat(60)}`)
    assert.notEqual(other.socket, places.socket)
    assert.notEqual(other.network, places.network)
    for (const one of [places, other]) {
      assert.ok(Buffer.byteLength(`${one.socket}.ttrpc`) <= 107)
      assert.ok(one.network.length <= 15)
    }
  })
})

describe('containerdConfig() of a private containerd', () => {
  it('writes configuration version 2 for containerd 1.x', () => {
    const text = containerdConfig(settings)
    assert.match(text, /^version = 2\nroot = "\/var\/lib\/hyperkube\/containerd\/root"\n/)
    const lines = [
      `address = "${places.socket}"`,
      '[plugins."io.containerd.grpc.v1.cri"]',
      'restrict_oom_score_adj = true',
      'sandbox_image = "hyperkube.local/pause:1"',
      'bin_dir = "/usr/lib/cni"',
      'conf_dir = "/var/lib/hyperkube/containerd/net.d"',
      'snapshotter = "overlayfs"',
      '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]',
      'BinaryName = "/usr/sbin/runc"',
      'SystemdCgroup = false',
    ]
    for (const line of lines) assert.ok(text.split('\n').includes(line), line)
  })

  it('writes configuration version 3 since containerd 2.0, with separate sections for images and runtime', () => {
    const text = containerdConfig({ ...settings, major: 2, mayLowerOomScore: true })
    const lines = [
      'version = 3',
      'restrict_oom_score_adj = false',
      '[plugins."io.containerd.cri.v1.images".pinned_images]',
      'sandbox = "hyperkube.local/pause:1"',
      '[plugins."io.containerd.cri.v1.runtime".cni]',
      'bin_dirs = ["/usr/lib/cni"]',
    ]
    for (const line of lines) assert.ok(text.split('\n').includes(line), line)
  })

  it('uses no path that other containerds of the machine share', () => {
    for (const major of [1, 2]) {
      const values = containerdConfig({ ...settings, major }).matchAll(/"(\/[^"]*)"/g)
      const paths = [...values].flatMap(([, value = '']) => value.split(':'))
      const ours = (path: string): boolean =>
        path.startsWith('/var/lib/hyperkube/') || path.startsWith(places.stateFolder)
      assert.deepEqual(paths.filter((path) => !ours(path)).sort(), [
        '/etc/containerd/certs.d',
        '/usr/lib/cni',
        '/usr/sbin/runc',
      ])
    }
  })

  it('escapes all special characters in TOML', () => {
    assert.equal(toml({ a: 'x"\\\n\u007f', 'b.c': { d: [] } }), 'a = "x\\"\\\\\\n\\u007f"\n\n["b.c"]\nd = []\n')
  })
})

describe('networkConfig() of a private containerd', () => {
  it('has a range and a default route for each IP family', () => {
    const { name, plugins } = JSON.parse(networkConfig(['10.1.2.0/24', 'fd00:1::/64'], places))
    assert.equal(name, places.network)
    assert.deepEqual(
      plugins.map(({ type }: { type: string }) => type),
      ['bridge', 'portmap'],
    )
    assert.deepEqual(plugins[0].ipam.ranges, [[{ subnet: '10.1.2.0/24' }], [{ subnet: 'fd00:1::/64' }]])
    assert.deepEqual(plugins[0].ipam.routes, [{ dst: '0.0.0.0/0' }, { dst: '::/0' }])
  })
})

describe('versionIn() for the output of containerd', () => {
  const table: [string, string][] = [
    ['containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n', '1.6.20'],
    ['containerd github.com/containerd/containerd/v2 v2.4.2 8e1b2c\n', '2.4.2'],
    ['containerd github.com/containerd/containerd/v2 2.4.2+unknown \n', '2.4.2'],
  ]
  for (const [text, version] of table) it(`finds version ${version}`, () => assert.equal(versionIn(text), version))

  it('throws for output without a version', () =>
    assert.throws(() => versionIn('containerd, of course'), /reports no version/))
})
