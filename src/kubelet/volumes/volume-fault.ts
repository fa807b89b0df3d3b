/** The error of a volume whose event does not begin with `MountVolume.SetUp failed`. */
export class VolumeFault extends Error {
  override readonly name = 'VolumeFault'
  readonly phase: string

  constructor(phase: string, message: string) {
    super(message)
    this.phase = phase
  }
}
