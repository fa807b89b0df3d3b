import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createSeededRandom } from '../random.ts'
import { createCidrAllocator, createIpAllocator, planIpBands } from './cidr-allocator.ts'
import {
  type Cidr,
  cidrOf,
  cidrSize,
  contains,
  formatCidr,
  formatIp,
  type Ip,
  overlaps,
  parseCidr,
  parseIp,
} from './cidr.ts'

function ip(text: string): Ip {
  return parseIp(text) ?? assert.fail(`no address: ${text}`)
}

function cidr(text: string): Cidr {
  return parseCidr(text) ?? assert.fail(`no block: ${text}`)
}

const anyIp = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }).map((value): Ip => ({ family: 4, value })),
  fc
    .array(fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 0xffffn })), { minLength: 8, maxLength: 8 })
    .map((groups): Ip => ({ family: 6, value: groups.reduce((value, group) => value * 65536n + group, 0n) })),
)

describe('IP addresses', () => {
  it('are parsed in canonical form', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['0.0.0.0', '0.0.0.0'],
      ['255.255.255.255', '255.255.255.255'],
      ['10.0.0.1', '10.0.0.1'],
      ['::', '::'],
      ['::1', '::1'],
      ['1::', '1::'],
      ['FE80::1', 'fe80::1'],
      ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
      ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
      ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
      ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
      ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
      ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ]
    for (const [text, canonical] of cases) assert.equal(formatIp(ip(text)), canonical, text)
  })

  it('are rejected if they are not in canonical form', () => {
    const texts = [
      '',
      ' ',
      '1',
      '1.2.3',
      '1.2.3.4.5',
      '01.2.3.4',
      '1.2.3.04',
      '256.1.1.1',
      '1.2.3.-4',
      '1.2.3.4 ',
      '1.2.3.x',
    ]
    texts.push('0x1.2.3.4', '1..2.3', ':', ':::', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8::')
    texts.push(
      '::1:2:3:4:5:6:7:8',
      '12345::',
      'g::',
      '::1%eth0',
      '[::1]',
      ':1::',
      '1:',
      '::1.2.3',
      '::01.2.3.4',
      '1.2.3.4::',
    )
    texts.push('::ffff:1.2.3.4', '::ffff:102:304')
    for (const text of texts) assert.equal(parseIp(text), undefined, text)
  })

  it('are parsed with leading zeros on request', () => {
    assert.equal(formatIp(parseIp('010.001.000.009', { sloppy: true })!), '10.1.0.9')
    assert.deepEqual(parseIp('::ffff:1.2.3.4', { sloppy: true }), ip('1.2.3.4'))
    assert.equal(parseIp('010.1.1.256', { sloppy: true }), undefined)
  })

  it('survive printing and parsing', () => {
    fc.assert(
      fc.property(anyIp, (address) => {
        if (address.value >> 32n === 0xffffn) return
        assert.deepEqual(parseIp(formatIp(address)), address)
      }),
    )
  })
})

describe('CIDR blocks', () => {
  it('have a base address, and record whether they were written with it', () => {
    assert.equal(formatCidr(cidr('10.1.2.3/16')), '10.1.0.0/16')
    assert.notEqual(cidr('10.1.2.3/16').address, cidr('10.1.2.3/16').base)
    assert.equal(formatCidr(cidr('2001:db8::5/64')), '2001:db8::/64')
    assert.equal(formatCidr(cidr('0.0.0.0/0')), '0.0.0.0/0')
    assert.equal(cidrSize(cidr('::/0')), 2n ** 128n)
    assert.equal(formatCidr(parseCidr('::ffff:1.2.3.4/120', { sloppy: true })!), '1.2.3.0/24')
    for (const text of [
      '10.0.0.0',
      '10.0.0.0/',
      '10.0.0.0/33',
      '10.0.0.0/08',
      '10.0.0.0/+8',
      '::/129',
      '10.0.0.0/8/8',
      '/8',
      '010.0.0.0/8',
    ]) {
      assert.equal(parseCidr(text), undefined, text)
    }
  })

  it('compare only the prefix bits for containment and overlap', () => {
    const prefix = fc.nat(128)
    fc.assert(
      fc.property(anyIp, anyIp, prefix, prefix, (left, right, one, other) => {
        const [a, b] = [
          cidrOf(left, one % (left.family === 4 ? 33 : 129)),
          cidrOf(right, other % (right.family === 4 ? 33 : 129)),
        ]
        assert.ok(contains(a, left))
        const bits = left.family === 4 ? 32 : 128
        const shared = Math.min(a.prefixLength, b.prefixLength)
        const sameBits =
          left.family === right.family && left.value >> BigInt(bits - shared) === right.value >> BigInt(bits - shared)
        assert.equal(overlaps(a, b), sameBits)
        assert.equal(overlaps(b, a), sameBits)
        assert.equal(contains(a, right), overlaps(a, cidrOf(right, right.family === 4 ? 32 : 128)))
      }),
    )
  })
})

describe('IP address allocator', () => {
  it('splits a range into bands as in KEP-3070', () => {
    const cases: readonly (readonly [string, bigint, bigint])[] = [
      ['10.0.0.0/16', 257n, 65535n],
      ['10.0.0.0/20', 257n, 4095n],
      ['10.0.0.0/22', 65n, 1023n],
      ['10.0.0.0/24', 17n, 255n],
      ['10.0.0.0/28', 1n, 15n],
      ['10.0.0.0/30', 1n, 3n],
      ['10.0.0.0/32', 1n, 1n],
      ['fd00::/112', 257n, 65536n],
      ['fd00::/64', 257n, 2n ** 64n],
      ['fd00::/48', 257n, 2n ** 64n],
    ]
    for (const [text, upper, end] of cases) assert.deepEqual(planIpBands(cidr(text)), { first: 1n, upper, end }, text)
  })

  it('allocates every usable address once, the upper band first, and releases them', () => {
    const block = cidr('10.0.0.0/24')
    const allocator = createIpAllocator(block, createSeededRandom(1))
    assert.equal(allocator.free, 254n)
    const seen = Array.from({ length: 254 }, () => allocator.allocateNext()!)
    assert.equal(new Set(seen.map(formatIp)).size, 254)
    assert.ok(seen.slice(0, 238).every(({ value }) => value - block.base >= 17n))
    assert.ok(seen.every((address) => contains(block, address)))
    assert.equal(allocator.allocateNext(), undefined)
    assert.equal(allocator.free, 0n)
    assert.equal(allocator.release(ip('10.0.0.9')), true)
    assert.equal(allocator.release(ip('10.0.0.9')), false)
    assert.equal(formatIp(allocator.allocateNext()!), '10.0.0.9')
  })

  it('allocates a requested address once, and rejects one outside the range', () => {
    const allocator = createIpAllocator(cidr('fd00::/64'), createSeededRandom(1))
    assert.equal(allocator.allocate(ip('fd00::1')), true)
    assert.equal(allocator.allocate(ip('fd00::1')), false)
    assert.equal(allocator.has(ip('fd00::1')), true)
    for (const text of ['fd00::', 'fd00:0:0:1::', '10.0.0.1']) assert.equal(allocator.allocate(ip(text)), false, text)
    assert.equal(createIpAllocator(cidr('10.0.0.0/24'), createSeededRandom(1)).allocate(ip('10.0.0.255')), false)
    assert.equal(allocator.used, 1)
    assert.equal(allocator.free, 2n ** 64n - 2n)
  })

  it('counts free and allocated addresses correctly after any sequence of calls', () => {
    const command = fc.tuple(fc.constantFrom('allocate', 'next', 'release'), fc.nat(40))
    fc.assert(
      fc.property(fc.array(command, { maxLength: 80 }), fc.nat(), (commands, seed) => {
        const block = cidr('192.168.0.0/27')
        const allocator = createIpAllocator(block, createSeededRandom(seed))
        const model = new Set<bigint>()
        for (const [name, offset] of commands) {
          const address: Ip = { family: 4, value: block.base + BigInt(offset) }
          const usable = offset >= 1 && offset <= 30
          if (name === 'allocate') {
            assert.equal(allocator.allocate(address), usable && !model.has(address.value))
            if (usable) model.add(address.value)
          } else if (name === 'release') {
            assert.equal(allocator.release(address), model.delete(address.value))
          } else {
            const given = allocator.allocateNext()
            assert.equal(given === undefined, model.size === 30)
            if (given) assert.ok(!model.has(given.value) && model.add(given.value))
          }
          assert.equal(allocator.used, model.size)
          assert.equal(allocator.free, 30n - BigInt(model.size))
        }
      }),
    )
  })
})

describe('CIDR block allocator', () => {
  it('allocates blocks in rotation and reuses a released one last', () => {
    const blocks = createCidrAllocator(cidr('10.244.0.0/22'), 24)
    assert.deepEqual(
      [1, 2, 3].map(() => formatCidr(blocks.allocateNext())),
      ['10.244.0.0/24', '10.244.1.0/24', '10.244.2.0/24'],
    )
    blocks.release(cidr('10.244.0.0/24'))
    assert.equal(formatCidr(blocks.allocateNext()), '10.244.3.0/24')
    assert.equal(formatCidr(blocks.allocateNext()), '10.244.0.0/24')
    assert.throws(() => blocks.allocateNext(), {
      name: 'CidrError',
      message: 'CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range',
    })
  })

  it('marks all blocks that overlap with a given block as allocated', () => {
    const blocks = createCidrAllocator(cidr('10.244.0.0/16'), 24)
    blocks.occupy(cidr('10.244.1.128/25'))
    blocks.occupy(cidr('10.244.4.0/22'))
    assert.equal(blocks.used, 5)
    blocks.occupy(cidr('10.0.0.0/8'))
    assert.equal(blocks.used, blocks.size)
    blocks.release(cidr('10.244.7.0/24'))
    assert.equal(formatCidr(blocks.allocateNext()), '10.244.7.0/24')
    assert.throws(() => blocks.occupy(cidr('10.245.0.0/24')), {
      message: 'cidr 10.245.0.0/24 is out the range of cluster cidr 10.244.0.0/16',
    })
  })

  it('supports up to 65,536 IPv6 blocks and rejects more', () => {
    const blocks = createCidrAllocator(cidr('fd00:10:244::/48'), 64)
    assert.equal(blocks.size, 65_536)
    blocks.allocateNext()
    assert.equal(formatCidr(blocks.allocateNext()), 'fd00:10:244:1::/64')
    const message = 'New CIDR set failed; the node CIDR size is too big'
    assert.throws(() => createCidrAllocator(cidr('fd00::/40'), 64), { message })
    assert.throws(() => createCidrAllocator(cidr('10.0.0.0/24'), 16), { name: 'CidrError' })
    assert.throws(() => createCidrAllocator(cidr('10.0.0.0/24'), 33), { name: 'CidrError' })
  })
})
