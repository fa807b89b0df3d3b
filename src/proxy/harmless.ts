/**
 * Addresses that no Service may send packets to, nor take for its own: with them, who may write a Service or an EndpointSlice could
 * reach what only the node itself may reach (CVE-2021-25737, CVE-2020-8558), or take from it what is sent to nobody in particular.
 */
import { type Cidr, contains, type Ip, parseCidr } from '#lib/cidr.ts'

const FORBIDDEN: readonly Cidr[] = [
  // "This network" and the unspecified address, loopback, link-local (metadata of clouds), multicast, reserved with broadcast.
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Unspecified, loopback, link-local, multicast. IPv4 in IPv6's clothes counts as IPv4 by the time it is looked at.
  '::/127',
  'fe80::/10',
  'ff00::/8',
].flatMap((text) => parseCidr(text) ?? [])

export function isHarmless(ip: Ip): boolean {
  return !FORBIDDEN.some((range) => contains(range, ip))
}
