/**
 * Which addresses requests may be passed on to. Node, pod and endpoint addresses come from objects that others write:
 * without a rule the API server would fetch for them what only it can reach, such as itself or a cloud's metadata.
 */
import { contains, parseCidr, parseIp } from '#lib/cidr.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { badRequestError } from '#meta/status-errors.ts'

/** Where names come from. */
export interface Network {
  /** All addresses of a host name. */
  readonly lookup: (host: string) => Promise<readonly string[]>
  /** Where to connect to for an address that was found allowed; default: there. */
  readonly routeTo?: (address: string) => string
  /** Where the kubelet of an allowed address listens, when not there: one of this process, for this machine only. */
  readonly kubeletDoor?: (address: string) => string | undefined
  /** Who answers for a kubelet in this process, so that nobody has to connect; default: nobody. */
  readonly kubeletAt?: (host: string) => ((exchange: Exchange) => Promise<void>) | undefined
}

const blocks = (texts: string): ReturnType<typeof parseCidr>[] => texts.split(' ').map((text) => parseCidr(text))

/** Nobody's own address: unspecified, broadcast, multicast, and what is only valid on one link. */
const NEVER = blocks('0.0.0.0/32 255.255.255.255/32 169.254.0.0/16 224.0.0.0/4 ::/128 fe80::/10 ff00::/8')
const LOOPBACK = blocks('127.0.0.0/8 ::1/128')

function isIn(list: typeof NEVER, address: string): boolean {
  const ip = parseIp(address, { sloppy: true })
  return ip === undefined || list.some((block) => block !== undefined && contains(block, ip))
}

/** A kubelet may run on the machine of the API server itself. */
export function isKubeletAddress(address: string): boolean {
  return !isIn(NEVER, address)
}

/** As Go's IsGlobalUnicast, private networks included: what users may have requests passed on to. */
export function isGlobalUnicast(address: string): boolean {
  return !isIn(NEVER, address) && !isIn(LOOPBACK, address)
}

/**
 * Finds the address of a host and checks all that there are. Whoever connects must connect to the one that is returned:
 * asked again, a hostile name server may answer otherwise (CVE-2020-8562).
 */
export async function allowedAddress(
  host: string,
  { lookup, routeTo = (address) => address }: Network,
  isAllowed: (address: string) => boolean,
): Promise<string> {
  const addresses = parseIp(host, { sloppy: true }) === undefined ? await lookup(host) : [host]
  const [first] = addresses
  if (first === undefined) throw badRequestError('no addresses for hostname')
  if (!addresses.every(isAllowed)) throw badRequestError('address not allowed')
  return routeTo(first)
}
