/**
 * The error of a volume that failed in a phase other than `MountVolume.SetUp`. The text of its event begins with the
 * phase.
 */
export class VolumeFault extends Error {
  override readonly name = 'VolumeFault'
  readonly phase: string

  constructor(phase: string, message: string) {
    super(message)
    this.phase = phase
  }
}
