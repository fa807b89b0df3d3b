import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { IPAddress, ServiceCIDR } from '#apis/networking/v1.ts'
import { contains, parseCidr, parseIp } from '#lib/cidr.ts'

import { mayGo } from './service-cidr.ts'

const range = (name: string, ...cidrs: string[]): ServiceCIDR => ({ metadata: { name }, spec: { cidrs }, status: {} })

const address = (name: string, by = 'ipallocator.k8s.io'): IPAddress => ({
  metadata: { name, labels: { 'ipaddress.kubernetes.io/managed-by': by } },
  spec: { parentRef: { resource: 'services', name: 's' } },
})

describe('a range may go', () => {
  const own = range('own', '10.0.0.0/24')
  const cases: readonly [what: string, others: ServiceCIDR[], addresses: IPAddress[], may: boolean][] = [
    ['when nothing is in use', [], [], true],
    ['not while an address is', [], [address('10.0.0.5')], false],
    ['when the address is nobody of ours', [], [address('10.0.0.5', 'me')], true],
    ['when the address is in another', [range('b', '10.0.0.0/30')], [address('10.0.0.1')], true],
    ['not when it is the last of another', [range('b', '10.0.0.0/30')], [address('10.0.0.3')], false],
    ['when a larger one has all of it', [range('b', '10.0.0.0/16')], [address('10.0.0.5')], true],
    ['when another is the same', [range('b', '10.0.0.0/24')], [address('10.0.0.5')], true],
  ]
  for (const [what, others, addresses, may] of cases) {
    it(what, () => assert.equal(mayGo(own, [own, ...others], addresses), may))
  }

  it('only when every address that is left belongs to a range', () => {
    const cidr = fc
      .tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 26, max: 30 }))
      .map(([at, bits]) => `10.0.0.${at * 16}/${bits}`)
      // Written as the API takes them, with nothing behind the prefix.
      .filter((text) => parseCidr(text)?.address === parseCidr(text)?.base)
    const ip = fc.integer({ min: 0, max: 255 }).map((last) => `10.0.0.${last}`)
    fc.assert(
      fc.property(fc.array(cidr, { minLength: 1, maxLength: 4 }), fc.uniqueArray(ip), (cidrs, ips) => {
        const all = cidrs.map((text, at) => range(`r${at}`, text))
        const [first] = all as [ServiceCIDR]
        const isIn = (text: string, { spec }: ServiceCIDR): boolean =>
          (spec.cidrs ?? []).some((one) => {
            const [block, found] = [parseCidr(one), parseIp(text)]
            return block !== undefined && found !== undefined && contains(block, found)
          })
        const used = ips.filter((text) => all.some((one) => isIn(text, one)))
        if (
          !mayGo(
            first,
            all,
            used.map((text) => address(text)),
          )
        )
          return
        const rest = all.slice(1)
        const edges = /\.(\d+)$/
        for (const text of used.filter((one) => isIn(one, first) && !rest.some((other) => isIn(one, other)))) {
          // Only what the range itself would never give out may be left behind.
          const last = Number(edges.exec(text)?.[1])
          const [, base = '', bits = ''] = /\.(\d+)\/(\d+)$/.exec(first.spec.cidrs?.[0] ?? '') ?? []
          const size = 2 ** (32 - Number(bits))
          assert.ok(last === Number(base) || last === Number(base) + size - 1, `${text} of ${cidrs.join(' ')}`)
        }
      }),
    )
  })
})
