import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { IPAddress, ServiceCIDR } from '#apis/networking/v1.ts'
import { contains, parseCidr, parseIp } from '#lib/net/cidr.ts'

import { mayGo } from './service-cidr.ts'

const range = (name: string, ...cidrs: string[]): ServiceCIDR => ({ metadata: { name }, spec: { cidrs }, status: {} })

const address = (name: string, by = 'ipallocator.k8s.io'): IPAddress => ({
  metadata: { name, labels: { 'ipaddress.kubernetes.io/managed-by': by } },
  spec: { parentRef: { resource: 'services', name: 's' } },
})

describe('removal of a ServiceCIDR finalizer', () => {
  const own = range('own', '10.0.0.0/24')
  const cases: readonly [what: string, others: ServiceCIDR[], addresses: IPAddress[], may: boolean][] = [
    ['is allowed without addresses in use', [], [], true],
    ['is refused with an address in use', [], [address('10.0.0.5')], false],
    ['is allowed with an address that another manager owns', [], [address('10.0.0.5', 'me')], true],
    [
      'is allowed if another range contains the address in use',
      [range('b', '10.0.0.0/30')],
      [address('10.0.0.1')],
      true,
    ],
    [
      'is refused if the address in use is the last of the other range',
      [range('b', '10.0.0.0/30')],
      [address('10.0.0.3')],
      false,
    ],
    ['is allowed if a larger range contains the whole range', [range('b', '10.0.0.0/16')], [address('10.0.0.5')], true],
    ['is allowed if another ServiceCIDR has the same range', [range('b', '10.0.0.0/24')], [address('10.0.0.5')], true],
  ]
  for (const [what, others, addresses, may] of cases) {
    it(what, () => assert.equal(mayGo(own, [own, ...others], addresses), may))
  }

  it('is allowed only if another range contains every address in use', () => {
    const cidr = fc
      .tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 26, max: 30 }))
      .map(([at, bits]) => `10.0.0.${at * 16}/${bits}`)
      // The API requires a prefix without host bits.
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
          // Only the addresses that the range never assigns may remain.
          const last = Number(edges.exec(text)?.[1])
          const [, base = '', bits = ''] = /\.(\d+)\/(\d+)$/.exec(first.spec.cidrs?.[0] ?? '') ?? []
          const size = 2 ** (32 - Number(bits))
          assert.ok(last === Number(base) || last === Number(base) + size - 1, `${text} of ${cidrs.join(' ')}`)
        }
      }),
    )
  })
})
