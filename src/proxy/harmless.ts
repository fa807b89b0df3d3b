/**
 * Decides which addresses kube-proxy ignores in Services and EndpointSlices. Otherwise their authors could reach
 * node-local services (CVE-2021-25737, CVE-2020-8558) or capture broadcast traffic.
 */
import { type Cidr, contains, type Ip, parseCidr } from '#lib/net/cidr.ts'

const FORBIDDEN: readonly Cidr[] = [
  // "This network" and the unspecified address, loopback, link-local (metadata of clouds), multicast, reserved with broadcast.
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Unspecified, loopback, link-local, multicast. IPv4-mapped addresses were converted to IPv4 before.
  '::/127',
  'fe80::/10',
  'ff00::/8',
].flatMap((text) => parseCidr(text) ?? [])

export function isHarmless(ip: Ip): boolean {
  return !FORBIDDEN.some((range) => contains(range, ip))
}
