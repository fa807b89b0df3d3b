/** The image of this program: nodes that "hyperkube build" makes have it without a registry, because each makes it of its own copy. */
import { hyperkubeVersion } from './version.ts'

export const OWN_REPOSITORY = 'hyperkube.local/hyperkube'

/** Its arguments are those of `hyperkube`. */
export function ownImage(): string {
  return `${OWN_REPOSITORY}:v${hyperkubeVersion()}`
}
