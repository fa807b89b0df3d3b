import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'

import { parseQuantity, quantityValue } from '#meta/quantity.ts'

import { defaultInterface, limitsSwap, memoryKiOf, prettyName, readMachine } from './machine.ts'

test('memoryKiOf() reads the total memory in KiB', () => {
  assert.equal(memoryKiOf('MemTotal:       24682740 kB\nMemFree:        1 kB\n'), 24_682_740)
  assert.equal(memoryKiOf(''), 0)
})

test('prettyName() reads the name of the operating system, with or without quotes', () => {
  assert.equal(
    prettyName('NAME=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'),
    'Debian GNU/Linux 12 (bookworm)',
  )
  assert.equal(prettyName('PRETTY_NAME=Alpine\n'), 'Alpine')
  assert.equal(prettyName(''), 'Linux')
})

test('defaultInterface() finds the interface with the default route', () => {
  const head = 'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT'
  const near = 'cni0\t0000F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0'
  const out = 'eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0'
  assert.equal(defaultInterface([head, near, out].join('\n')), 'eth0')
  assert.equal(defaultInterface([head, near].join('\n')), undefined)
})

test('limitsSwap() returns true if cgroup v2 has a file for the swap limit', async () => {
  const unified = '/sys/fs/cgroup/system.slice/kubelet.service/memory.swap.max'
  const table: readonly (readonly [own: string | undefined, there: string, limits: boolean])[] = [
    ['0::/system.slice/kubelet.service\n', unified, true],
    ['0::/system.slice/kubelet.service\n', '/sys/fs/cgroup/memory.swap.max', false],
    ['9:memory:/a\n1:name=systemd:/b\n0::/\n', unified, false],
    ['9:memory:/a\n10::/system.slice/kubelet.service\n', unified, false],
    [undefined, unified, false],
  ]
  for (const [own, there, limits] of table) {
    const read = async (path: string): Promise<string | undefined> => {
      if (path === '/proc/self/cgroup') return own
      return path === there ? 'max\n' : undefined
    }
    assert.equal(await limitsSwap(read), limits, JSON.stringify([own, there]))
  }
})

test('readMachine() reads CPUs, memory, storage, an address and the pod capacity', async () => {
  const { capacity, addresses, architecture, memoryBytes } = await readMachine({ rootDir: tmpdir(), maxPods: 110 })
  assert.equal(capacity['pods'], '110')
  assert.ok(Number(capacity['cpu']) > 0)
  assert.equal(quantityValue(parseQuantity(capacity['memory'] ?? '')), memoryBytes)
  assert.ok(quantityValue(parseQuantity(capacity['ephemeral-storage'] ?? '')) > 0)
  assert.equal(addresses.length, 1)
  assert.match(architecture, /^\w+$/)
})
