/** IP addresses and networks. */
import { defineLibrary, free, member, type Library } from '../library.ts'
import { BOOL, INT, STRING, opaque } from '../type.ts'

const IP = opaque('net.IP')
const CIDR = opaque('net.CIDR')

export const ip: Library = defineLibrary(
  'kubernetes.net.ip',
  {
    ip: [free('string_to_ip', [STRING], IP)],
    family: [member('ip_family', [IP], INT)],
    'ip.isCanonical': [free('ip_is_canonical', [STRING], BOOL)],
    isUnspecified: [member('ip_is_unspecified', [IP], BOOL)],
    isLoopback: [member('ip_is_loopback', [IP], BOOL)],
    isLinkLocalMulticast: [member('ip_is_link_local_multicast', [IP], BOOL)],
    isLinkLocalUnicast: [member('ip_is_link_local_unicast', [IP], BOOL)],
    isGlobalUnicast: [member('ip_is_global_unicast', [IP], BOOL)],
    isIP: [free('is_ip', [STRING], BOOL)],
    string: [free('ip_to_string', [IP], STRING)],
  },
  { 'net.IP': IP },
)

export const cidr: Library = defineLibrary(
  'kubernetes.net.cidr',
  {
    cidr: [free('string_to_cidr', [STRING], CIDR)],
    containsIP: [
      member('cidr_contains_ip_string', [CIDR, STRING], BOOL),
      member('cidr_contains_ip_ip', [CIDR, IP], BOOL),
    ],
    containsCIDR: [
      member('cidr_contains_cidr_string', [CIDR, STRING], BOOL),
      member('cidr_contains_cidr', [CIDR, CIDR], BOOL),
    ],
    ip: [member('cidr_ip', [CIDR], IP)],
    prefixLength: [member('cidr_prefix_length', [CIDR], INT)],
    masked: [member('cidr_masked', [CIDR], CIDR)],
    isCIDR: [free('is_cidr', [STRING], BOOL)],
    string: [free('cidr_to_string', [CIDR], STRING)],
  },
  { 'net.CIDR': CIDR },
)
